"""The experiments of the four papers: their tables and figures, over data sets of one's own.

Nothing else imports this package: the command line finds its commands by entry points. ``commands`` has the commands,
``kgp``, ``d3``, ``semicot`` and ``fourstep`` one paper each, ``page`` and ``figures`` what their pages consist of.
"""
