"""Evaluation: data sets in their official forms, measures with canonical names, runs that can be continued, reports.

``datasets`` reads questions, ``setup`` makes their corpora, ``runner`` and ``run_folder`` answer them and keep
one JSON line for each, ``metrics`` measures the answers, ``statistics`` and ``report`` make tables of several runs.
"""
