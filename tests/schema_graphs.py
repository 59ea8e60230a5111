"""Graphs for the tests of typed triples: a small one of films, and one of very many relations."""

from link_graphs import graph_of

FILMS = {
    "Blue Velvet": ("David Lynch", 1986, "a dark film about a severed ear"),
    "Eraserhead": ("David Lynch", 1977, "a slow film"),
    "Heat": ("Michael Mann", 1995, "thieves and police"),
}


def films(base, name="films"):
    nodes = {
        title: {"types": ["film"], "name": title, "text": text, "properties": {"release_year": year}}
        for title, (_, year, text) in FILMS.items()
    }
    nodes |= {who: {"types": ["person"], "name": who} for who in ("David Lynch", "Michael Mann", "Al Pacino")}
    nodes["David Lynch"] |= {"properties": {"born": "1946-01-20"}}
    nodes["Heat"]["properties"] |= {"colour": ["blue", "grey"]}
    triples = [(title, "directed_by", who) for title, (who, _, _) in FILMS.items()]
    return graph_of(base, [*triples, ("Heat", "starred_actors", "Al Pacino")], name, **nodes)


def wide(base, relations=200, name="wide"):
    """Many relations between many types, each of a few edges; one of them is the winner of a race."""
    nodes, triples = {}, []
    for n in range(relations):
        for end in ("a", "b"):
            nodes[f"{end}{n}"] = {
                "types": [f"kind{n}{end}"],
                "name": f"Node {end}{n}",
                "properties": {f"size {n}": n},
            }
        triples.append((f"a{n}", f"relation{n}", f"b{n}"))
    nodes |= {
        "Derby": {"types": ["race"], "name": "Derby"},
        "Bittern": {"types": ["horse"], "name": "Bittern"},
    }
    triples += [
        ("Derby", "won_by", "Bittern"),
        ("Derby", "ridden_over", "Bittern"),
        ("Bittern", "runs_in", "Derby"),
    ]
    nodes["Derby"] |= {"properties": {"length in miles": 2.5}}
    return graph_of(base, triples, name, **nodes)
