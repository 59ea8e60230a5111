"""``python -m clew``: the command line, where its script is not on the path."""

from clew.cli import main

main()
