"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Kb: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--kb",
        metavar="FOLDER",
        help="The knowledge base.",
        show_default="$CLEW_HOME, else ./.clew",
    ),
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON for programs, and nothing else, on stdout.")
]
Documents: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--documents",
        "-d",
        metavar="DOCUMENT",
        help="Only in this document or folder: file name, path or key. Repeat for several.",
        show_default=False,
    ),
]
Llm: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--llm",
        metavar="MODEL",
        help="The language model: openai:gpt-4o-mini, ollama:llama3.1, http://localhost:8000/v1#name, "
        "replay:file.jsonl; or one per role, repeated: guide=ollama:llama3.1.",
        show_default="$CLEW_LLM, else none",
    ),
]
Recipe: TypeAlias = Annotated[
    str,
    typer.Option(
        "--recipe",
        "--method",
        metavar="RECIPE",
        help="The method and its parameters: default, kgp-paper, selfask, or written out, such as "
        "'kgp(graph=keywords, guide=tfidf, budget=30)'.",
    ),
]
Retriever: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--retriever",
        metavar="NAME",
        help="What the method searches with, for methods that leave it open: see clew recipes.",
        show_default=False,
    ),
]
Workers: TypeAlias = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Reading processes.", show_default="one per core"),
]
BudgetCalls: TypeAlias = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Stop before more model calls than this.", show_default=False),
]
BudgetTokens: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="N", help="Stop before model calls take more tokens, in and out.", show_default=False
    ),
]
BudgetMoney: TypeAlias = Annotated[
    float | None,
    typer.Option(min=0, metavar="DOLLARS", help="Stop before model calls cost more.", show_default=False),
]
