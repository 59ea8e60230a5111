"""Readers: an answer from a question and hits."""
