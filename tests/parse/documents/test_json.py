"""JSON, JSON lines, notebooks and LaTeX: what of them is a heading, a table, a list, a text."""

from __future__ import annotations

import json

import pytest

from clew.core.errors import UnreadableFile
from clew.parse.documents.reader import parse
from parse_trees import read, read_outline, tables


def test_objects_lists_and_tables() -> None:
    text = """{"name": "Saltreach", "depth": 11.50, "open": true, "closed": null, "tags": ["a", "b"],
        "tolls": [{"item": "Coal", "1928": 4}, {"item": "Tin", "1928": 6, "1929": 1e3}],
        "keeper": {"name": "Ines", "story": "First.\\n\\nSecond."},
        "boats": [{"name": "Bittern", "crew": [{"name": "Jory"}]}, {"built": 1901}], "empty": {}, "none": []}"""
    assert read_outline(text, "a.json") == [
        "name: Saltreach\ndepth: 11.50\nopen: true\ntags: a, b".removeprefix("name: Saltreach\n"),
        "| tolls. Coal: 1928: 4",
        "| tolls. Tin: 1928: 6; 1929: 1e3",
        "# keeper",
        "name: Ines",
        "story: First.",
        "Second.",
        "# boats",
        "## Bittern",
        "### crew",
        "#### Jory",
        "## boats 2",
        "built: 1901",
    ]
    assert read(text, "a.json").title == "Saltreach"


def test_a_list_of_lists_is_a_table_and_plain_values_a_list() -> None:
    assert tables(read("[[1, 2], [3, 4]]", "a.json")) == ["|  |  |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |"]
    assert read_outline('["a", 2, null]', "a.json") == ["- a\n- 2"]
    assert read_outline('"only words"', "a.json") == ["only words"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.json"])
def test_json_lines_are_records(name: str) -> None:
    lines = [{"title": f"Case {number}", "text": "Long words. " * 40} for number in range(2)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    document = read(text, name)
    assert [node.text for node in document.nodes if node.kind == "section"] == ["Case 0", "Case 1"]
    assert document.media_type == "application/x-ndjson"
    if name != "a.json":
        assert read(text + "prose\n", name).notes == ("1 line is not JSON and left out, the first is line 3",)


def test_a_notebook_has_text_code_and_output() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Tolls\n", "\n", "They rise."]},
        {
            "cell_type": "code",
            "source": "tolls.head()",
            "outputs": [
                {"output_type": "display_data", "data": {"text/html": "<table><tr><th>Item<th>1928<tr><td>Coal<td>4</table>"}},  # noqa: E501
                {"output_type": "stream", "text": ["done\n"]},
                {"output_type": "execute_result", "data": {"text/plain": "<Figure size 1x1>", "image/png": "iVBO"}},
                {"output_type": "execute_result", "data": {"text/plain": "42"}},
                {"output_type": "error", "ename": "KeyError", "evalue": "'tin'", "traceback": ["\\u001b[0;31m"]},
            ],
        },
        {"cell_type": "raw", "source": "Raw words."},
    ]  # fmt: skip
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    document = read(text, "a.ipynb")
    assert document.title == "Tolls"
    expected = [
        "# Tolls",
        "They rise.",
        "tolls.head()",
        "| Coal: 1928: 4",
        "done",
        "42",
        "KeyError: 'tin'",
        "Raw words.",
    ]
    assert read_outline(text, "a.ipynb") == expected
    old = {
        "worksheets": [
            {
                "cells": [
                    {"cell_type": "heading", "level": 2, "source": "Old"},
                    {"cell_type": "code", "input": "1+1"},
                ]
            }
        ]
    }
    assert read_outline(json.dumps(old), "a.ipynb") == ["## Old", "1+1"]


LATEX = r"""
% a remark
\documentclass[12pt]{article}
\newcommand{\port}{Saltreach}
\title{The Tolls of \port}
\author{Ines Calder \and Jory Penhallow}
\begin{document}\maketitle
\begin{abstract}We study tolls.% inline
\end{abstract}
\section{Introduction}\label{sec:intro}
The lock at \port{} was opened by \textbf{Ines}\footnote{She was 31.} in
the spring, for 5\,\% of \$100---see \cite[p.~2]{calder}.

Caf\'e, na\"{\i}ve, \v{c}. Formula $a^2$ and \begin{equation}\label{e} E = mc^2 \end{equation}
\subsection*{Lists}
They are:
\begin{itemize}
\item high
\begin{enumerate}\item one \item two\end{enumerate}
\item[x] low
\end{itemize}
\begin{description}\item[Coal] black\end{description}
\begin{table}\caption{Tolls by year}\begin{tabular}{l|rr}\hline
 & \multicolumn{2}{c}{Year} \\
Item & 1928 & 1929 \\ \midrule
Coal \& ash & 4 & 5 \\ Tin & 6 & 7 \\
\end{tabular}\end{table}
\begin{verbatim}
x = 1
  y = 2
\end{verbatim}
\input{other}
\end{document}
Not on the page.
"""


def test_latex() -> None:
    document = read(LATEX, "a.tex")
    assert document.title == "The Tolls of Saltreach"
    assert document.notes == ("text of other files is not in it: other",)
    assert read_outline(LATEX, "a.tex") == [
        "# The Tolls of Saltreach",
        "author: Ines Calder, Jory Penhallow",
        "# Abstract",
        "We study tolls.",
        "# Introduction",
        "The lock at Saltreach was opened by Ines[1] in the spring, for 5 % of $100—see [calder].",
        "[1] She was 31.",
        "Café, naïve, č. Formula $a^2$ and E = mc^2",
        "## Lists",
        "They are:\n- high\n  1. one\n  2. two\nx low",
        "Coal: black",
        "| Tolls by year. Coal & ash: Year 1928: 4; Year 1929: 5",
        "| Tolls by year. Tin: Year 1928: 6; Year 1929: 7",
        "x = 1\n  y = 2",
    ]


def test_halves_of_characters_are_replaced() -> None:
    """No base can store them; ``clew add`` once ended with a traceback."""
    for data, name in (
        (rb'{"name\ud800": "a duck: \ud83e\udd86, half of it: \ud83e."}', "a.json"),
        (rb'{"a": "\udd86 half"}' + b"\n", "a.jsonl"),
        (rb'{"cells": [{"cell_type": "markdown", "source": ["half \ud83e"]}]}', "a.ipynb"),
    ):
        parsed = parse(data, name)
        assert "half" in parsed.text and "\ufffd" in parsed.text
        assert all(node.text.encode() for node in parsed.nodes)
    assert "🦆" in parse(rb'{"a": "\ud83e\udd86"}', "a.json").text


def test_values_one_after_the_other_and_bars_of_progress() -> None:
    assert "second" in parse(b'{\n "a": "first"\n}\n{\n "a": "second"\n}\n', "a.json").text
    with pytest.raises(UnreadableFile, match="Extra data in line 3"):
        parse(b'{\n "a": 1}\n} {"b": 2}', "a.json")
    output = {"output_type": "stream", "text": ["\r  0%|", "\r100%|##\n"]}
    cells = [{"cell_type": "code", "source": "run()", "outputs": [output]}]
    notebook = {"metadata": {"authors": [{"name": "Ada Reyes"}]}, "cells": cells}
    document = parse(json.dumps(notebook).encode(), "a.ipynb")
    assert document.fields == (("author", "Ada Reyes"),) and document.text.split("\n")[-1] == "100%|##"
