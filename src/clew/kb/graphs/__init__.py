"""Imported graphs: the truth packed into SQLite, and arrays made from it.

``build`` stages what a reader gives and packs it; ``truth`` writes, reads and removes packed graphs; ``arrays`` makes
what is searched; ``view`` is a graph as the rest of clew sees it. Why so: ``docs/decisions/0010-graphs-in.md``.
"""
