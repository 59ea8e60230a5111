"""Documents: files of every format are parsed into the same tree of nodes.

:func:`clew.parse.documents.reader.read_file` reads one file, :class:`clew.parse.documents.pool.ParsePool` reads many
in processes of their own. Each format is a module with a ``FORMAT`` (:mod:`clew.parse.documents.formats`).
"""
