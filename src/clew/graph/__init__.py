"""Graphs over passages: which passages are neighbours, how strongly they are joined, and by what."""
