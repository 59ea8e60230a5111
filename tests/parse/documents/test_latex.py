r"""LaTeX as people write it: commands of their own, units, statements, code, slides, lists of references."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from parse_trees import read, read_outline

PAPER = r"""\documentclass{article}
\usepackage{siunitx}
\newcommand{\lock}[1]{\textsc{#1} lock}
\newcommand{\dear}[2][Sir]{#1 #2}
\def\city{Penmoor}
\newtheorem{rule}{Rule}
\title{On \city{} Lock\thanks{Funded by the Trust, grant 42.}}
\author{Ada Reyes\inst{1} \and Bj\"orn \AA str\"om\\ University of Wexcombe}
\date{March 2024}
\begin{document}
\maketitle
A \lock{Penmoor} of \SI{7.5}{\metre} fills in \qty{12}{\minute} at \SI{1.5e3}{\kilo\gram\per\cubic\metre}, not
\SIrange{3}{4}{\percent}. \dear{Moss}, \dear[Madam]{Ek}: \verb|a_b%c| and 10\textsuperscript{6}.
\begin{rule}[Filling] Every lock fills. \end{rule}
\begin{proof} It leaks. \end{proof}
\begin{itemize}\item First\item[(b)] Second\end{itemize}
\begin{table}\caption{Times}
\begin{tabular}{lrr}\toprule
Lock & \multicolumn{2}{c}{Minutes} \\ \cmidrule(lr){2-3}
 & 1990 & 2020 \\ \midrule
\city & 12.5 & 7.5 \\ \bottomrule
\end{tabular}\end{table}
\begin{verbatim}
x = 1 % not a comment
\end{verbatim}
Seen.\iffalse unseen \fi % unseen
\begin{thebibliography}{9}
\bibitem{smith98} J. Smith. \newblock \emph{Locks}. 1998.
\bibitem[Jones]{jones03} K. Jones. Weirs. 2003.
\end{thebibliography}
\end{document}
"""


def test_a_paper_with_commands_of_its_own() -> None:
    document = read(PAPER.encode(), "paper.tex")
    assert document.title == "On Penmoor Lock"
    assert document.fields == (("author", "Ada Reyes"), ("author", "Björn Åström"), ("date", "2024-03"))
    assert read_outline(PAPER.encode(), "paper.tex") == [
        "# On Penmoor Lock",
        "author: Ada Reyes, Björn Åström, University of Wexcombe\ndate: March 2024",
        "Funded by the Trust, grant 42.",
        "A Penmoor lock of 7.5 m fills in 12 min at 1.5×10³ kg/m³, not 3 to 4%. Sir Moss, Madam Ek: a_b%c and 10⁶.",
        "Rule (Filling). Every lock fills.",
        "Proof. It leaks.",
        "- First\n(b) Second",
        "| Times. Penmoor: Minutes 1990: 12.5; Minutes 2020: 7.5",
        "x = 1 % not a comment",
        "Seen.",
        "# References",
        "[smith98] J. Smith. Locks. 1998.",
        "[jones03] K. Jones. Weirs. 2003.",
    ]


def test_what_pandoc_writes_commands_with_spaces_and_tables_with_two_headers() -> None:
    table = (
        r"\begin{longtable}[]{@{}lr@{}}\caption{Tolls}\\\toprule Boat & 2023\\\midrule\endfirsthead"
        r"\toprule Boat & 2023\\\midrule\endhead\bottomrule Go on\\\endfoot\bottomrule\endlastfoot "
        r"Narrow & 6\\Wide & 10\\\end{longtable}"
    )
    code = r"\NormalTok{x }\OperatorTok{=} \DecValTok{1}"
    head = "".join(rf"\newcommand{{\{name}}}[1]{{#1}}" for name in ("NormalTok", "OperatorTok", "DecValTok"))
    source = rf"\documentclass{{article}}{head}\begin{{document}}{code}\par {table}\end{{document}}"
    assert read_outline(source.encode(), "a.tex") == [
        "x = 1", "| Tolls. Narrow: 2023: 6", "| Tolls. Wide: 2023: 10",
    ]  # fmt: skip


def test_slides_have_their_titles_as_headings() -> None:
    source = (
        r"\documentclass{beamer}\begin{document}\begin{frame}<1->[t]{Why locks?}\framesubtitle{A start}"
        r"\begin{itemize}\item<1-> They \alert<2>{lift} boats\end{itemize}\end{frame}"
        r"\begin{frame}\frametitle{Costs}\begin{columns}\column{.5\textwidth} Old: 5\end{columns}\end{frame}"
        r"\end{document}"
    )
    assert read_outline(source.encode(), "talk.tex") == [
        "## Why locks?", "A start", "- They lift boats", "## Costs", "Old: 5",
    ]  # fmt: skip


@pytest.mark.slow
def test_commands_that_double_themselves_and_what_never_ends_take_no_long_time() -> None:
    letters = "abcdefghijklmnopqrst"
    doubling = "".join(rf"\newcommand{{\x{a}}}{{\x{b}\x{b}}}" for a, b in pairwise(letters))
    endless = r"\begin{verbatim} \verb|x \iffalse " * 20_000
    loop = r"\newcommand{\again}[1]{\again{#1#1}}"
    before = time.process_time()
    sources = [rf"{doubling}\newcommand{{\xt}}{{long}}Words. \xa", f"Words. {endless}"]
    sources.append(rf"{loop}Words. \again{{aa}}")
    for source in sources:
        assert "Words." in read(source.encode(), "a.tex").text
    assert time.process_time() - before < 20
