"""``clew recipes``."""

from __future__ import annotations

from clew.cli.options import Json


def recipes(as_json: Json = False) -> None:
    """List methods, retrievers, graphs and readers, with their options and defaults.

    clew ask "..." --recipe "kgp(graph=keywords(n=20), hops=3)"
    """
    from clew import catalog
    from clew.cli.output import print_json

    found = catalog.describe_components()
    if as_json:
        print_json(
            {
                kind: [
                    {"name": name, "summary": summary, "recipe": recipe}
                    for name, (summary, recipe) in parts.items()
                ]
                for kind, parts in found.items()
            }
        )
        return
    for kind, parts in found.items():
        print(f"{kind}:")
        for name, (summary, recipe) in parts.items():
            print(f"  {name}: {summary}")
            if recipe != name:
                print(f"      {recipe}")
