"""D3 (Nair et al., EMNLP 2023): choose sections of a document by name and summary, then paragraphs within them."""
