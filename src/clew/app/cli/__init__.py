"""The command line. Its commands parse options and print results; the work is done by :mod:`clew.knowledge_base`."""
