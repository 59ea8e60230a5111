"""A small graph of typed films, people and places, for the tests of the method focus."""

from __future__ import annotations

from link_graphs import graph_of

#: id -> name, year, colour of the poster, what the film is like; then its director and actors.
FILMS = {
    "f1": (
        "The Salt Orchard",
        1931,
        "green",
        "A slow, dreamlike tale of an orchard by the sea.",
        "p1",
        "p2 p3",
    ),
    "f2": ("Low Water", 1932, "light green", "A brisk comedy about smugglers at ebb tide.", "p1", "p1 p4"),
    "f3": ("The Tin Parade", 1933, "red", "A loud farce with brass bands and a runaway tram.", "p5", "p2 p4"),
    "f4": ("Glass Harvest", 1934, "green", "A thriller in which a glazier is hunted.", "p1", "p3"),
    "f5": ("Nine Lanterns", 1935, "grey", "A slow and dreamlike night in nine rooms.", "p5", "p2 p3 p4"),
}
#: The films' names, in that order.
SALT, LOW, TIN, GLASS, NINE = (name for name, *_ in FILMS.values())
PEOPLE = {
    "p1": "Ilse Varnholt",
    "p2": "Emil Szarka",
    "p3": "Dorte Halvik",
    "p4": "Ruben Achterberg",
    "p5": "Marit Solheim",
}
BORN = {"p1": "t1", "p2": "t1", "p3": "t2", "p4": "t2", "p5": "t3"}
TOWNS = {"t1": "Dunmere", "t2": "Saltreach", "t3": "Vessby"}


def nodes():
    """Return what is said of each node, as a graph's builder takes it."""
    by_id = {
        id: {
            "types": ["film"],
            "name": name,
            "text": text,
            "properties": {"release_year": year, "colour": colour},
        }
        for id, (name, year, colour, text, _, _) in FILMS.items()
    }
    by_id |= {id: {"types": ["person"], "name": name} for id, name in PEOPLE.items()}
    return by_id | {id: {"types": ["town"], "name": name} for id, name in TOWNS.items()}


def triples():
    """Return the triples by id."""
    results = [(id, "directed_by", film[4]) for id, film in FILMS.items()]
    results += [(id, "starred_actors", actor) for id, film in FILMS.items() for actor in film[5].split()]
    return [*results, *((id, "born_in", town) for id, town in BORN.items())]


def films(store, name="films"):
    """Store the graph and return it as it is opened."""
    return graph_of(store, triples(), name, **nodes())
