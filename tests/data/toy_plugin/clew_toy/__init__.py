"""A package that adds one component of each kind to clew: each is one file."""
