"""clew: grounded question answering over your own documents, every answer with its thread."""
