"""Knowledge Graph Prompting (Wang et al., AAAI 2024): walk a graph of passages towards the answer."""
