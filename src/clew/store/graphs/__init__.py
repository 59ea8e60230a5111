"""Imported graphs: packed into SQLite, and searched as arrays built from the packed form.

``builder`` collects and packs a graph while it is read, ``tables`` stores and reads packed graphs, ``array_builder``
builds the ``arrays`` that are searched, ``imported_graph`` is a graph as the rest of clew sees it, ``node_index`` has
the vectors and words of its nodes, and ``graph_store`` the operations of a base on all of its graphs. The reasons are
in ``docs/decisions/0010-graphs-in.md``.
"""
