"""Questions about the structure of documents, such as "summarise section 3" or "table 2 on page 4"."""
