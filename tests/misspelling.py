"""Misspelled questions, for the floors of what is proposed."""

import random


def misspell(text: str, seed: int) -> str:
    """Exchange two neighbouring letters inside one of ten words."""
    draw = random.Random(seed)
    words = text.split()
    for place, word in enumerate(words):
        if len(word) > 4 and word.isalpha() and draw.random() < 0.1:
            cut = draw.randrange(1, len(word) - 2)
            words[place] = word[:cut] + word[cut + 1] + word[cut] + word[cut + 2 :]
    return " ".join(words)
