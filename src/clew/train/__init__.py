"""Training of the models that walks are guided by, from questions with ordered evidence."""
