"""Methods: each a short program close to its paper."""
