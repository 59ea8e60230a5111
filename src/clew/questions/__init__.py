"""Questions: read once, and matched with the formal queries that a base can answer.

* :mod:`~clew.questions.text` reads a question: words, numbers, dates and periods.
* :mod:`~clew.questions.names` finds the names of a graph's nodes in it.
* :mod:`~clew.questions.catalogue` lists what a graph can be asked: steps, types, properties, what follows what.
* :mod:`~clew.questions.plans` has the plans and the words that say them.
* :mod:`~clew.questions.graph_plans` enumerates the plans over a graph that a question may mean.
"""
