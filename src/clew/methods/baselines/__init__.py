"""Methods that the papers compare with, most of them prompting loops around a retriever."""
