"""`shiftlog sync SOURCE`: fetching facts from where they are published. A source is one module here and one line in `sources`."""
