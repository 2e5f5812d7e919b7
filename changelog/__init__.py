"""What upstream shipped (commits, releases, notes) and linking a shift to it. Imports `warehouse`, nothing else of ours."""
