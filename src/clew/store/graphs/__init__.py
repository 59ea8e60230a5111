"""Imported graphs: the truth packed into SQLite, and arrays made from it.

``build`` stages what a reader gives and packs it; ``truth`` writes, reads and removes packed graphs; ``making`` makes
``arrays``, which are searched; ``view`` is a graph as the rest of clew sees it, ``mounted`` one that stays elsewhere;
``shelf`` is what a base does with all of them. Why so: ``docs/decisions/0010-graphs-in.md``.
"""
