"""Files into a knowledge base."""
