"""Evaluation: data sets in their official forms, measures with canonical names, and their statistics."""
