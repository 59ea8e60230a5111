"""Documents in: every format becomes the same tree of nodes."""
