"""The prompts that come with clew: whose they are, what they are given, and their size without it.

    python benchmarks/prompt_table.py

Tokens are counted as clew counts them where no server does. A prompt with a schema is answered in JSON.
"""

from __future__ import annotations

from pathlib import Path

import clew.core.prompts
from clew.core.prompts.templates import load_prompt
from clew.models.costs import count_tokens


def main() -> None:
    print("| prompt | role | given | answered in | tokens |\n|---|---|---|---|---|")
    folder = Path(clew.core.prompts.__file__).parent
    for name in sorted({path.name.split(".")[0] for path in folder.glob("*.v*.md")}):
        template = load_prompt(name)
        tokens = count_tokens(template.system) + count_tokens(template.user)
        given = ", ".join(sorted(template.variables))
        form = "text" if template.schema is None else "JSON"
        print(f"| `{template.name}` | {template.role} | {given} | {form} | {tokens} |")


if __name__ == "__main__":
    main()
