"""Questions over tables as data: plain questions read by rule, SQL written by a language model, SQL by a person."""
