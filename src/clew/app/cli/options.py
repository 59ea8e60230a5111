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
        help="The folder of the knowledge base.",
        show_default="$CLEW_HOME, else ./.clew",
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]
Documents: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--documents",
        "-d",
        metavar="DOCUMENT",
        help="Search only this document or folder, by file name, path or key. Repeat for several.",
        show_default=False,
    ),
]
Llm: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--llm",
        metavar="MODEL",
        help="The language model: openai:gpt-4o-mini, ollama:llama3.1, http://localhost:8000/v1#name or "
        "replay:file.jsonl. For different models per role, repeat: guide=ollama:llama3.1.",
        show_default="$CLEW_LLM, else none",
    ),
]
Recipe: TypeAlias = Annotated[
    str,
    typer.Option(
        "--recipe",
        "--method",
        metavar="RECIPE",
        help="The method, such as default, chain or selfask, or with its options: "
        "'kgp(graph=keywords, guide=tfidf, budget=30)'. See clew recipes.",
    ),
]
Retriever: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--retriever",
        metavar="NAME",
        help="The retriever that the method searches with, if it lets you choose; see clew recipes.",
        show_default=False,
    ),
]
Workers: TypeAlias = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Read files in N processes.", show_default="one per core"),
]
BudgetCalls: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="N", help="Stop before the model is called more than N times.", show_default=False
    ),
]
BudgetTokens: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Stop before the model reads and writes more than N tokens.",
        show_default=False,
    ),
]
BudgetMoney: TypeAlias = Annotated[
    float | None,
    typer.Option(
        min=0, metavar="DOLLARS", help="Stop before the model costs more than this.", show_default=False
    ),
]
