"""How well detection works, on real runs and on series with known changes: `make eval`."""
