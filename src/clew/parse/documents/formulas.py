"""Formulas as a line of text: those of Office documents (OMML) and of web pages, books and OpenDocument (MathML)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clew.parse.documents.blocks import superscript
from clew.parse.documents.office_package import attribute_value, local_name

if TYPE_CHECKING:
    from lxml.etree import _Element

#: A part of a formula that needs no brackets.
_SIMPLE = re.compile(r"[\w.,]*|\(.*\)", re.S)
#: Formulas within each other: each costs a few frames of Python.
_MAX_FORMULA_DEPTH = 40


def office_formula_text(element: _Element, depth: int = 0) -> str:
    """Return a formula in one line: fractions with a slash, powers raised (ECMA-376, part 1, section 22.1:
    Office Math)."""
    if depth > _MAX_FORMULA_DEPTH:
        return "".join(part.text or "" for part in element.iter("{*}t"))

    def part(name: str) -> str:
        return "".join(
            office_formula_text(child, depth + 1)
            for child in (child for child in element if local_name(child) == name)
        ).strip()

    def sign(name: str, default: str) -> str:
        properties = next((child for child in element if local_name(child).endswith("Pr")), None)
        return next(
            (
                attribute_value(child, "val")
                for child in (properties if properties is not None else ())
                if local_name(child) == name
            ),
            default,
        )

    name = local_name(element)
    if name == "t":
        return element.text or ""
    if name.endswith("Pr") or name in {"del", "moveFrom"}:
        return ""
    if name == "f":
        return f"{_bracket(part('num'))}/{_bracket(part('den'))}"
    if name in {"sSup", "sSub", "sSubSup"}:
        return part("e") + _scripts(part("sub"), part("sup"))
    if name == "rad":
        return f"{superscript(part('deg'))}√({part('e')})"
    if name == "d":
        inner = sign("sepChr", "|").join(
            office_formula_text(child, depth + 1)
            for child in (child for child in element if local_name(child) == "e")
        )
        return f"{sign('begChr', '(')}{inner}{sign('endChr', ')')}"
    if name == "nary":
        below, above = part("sub"), part("sup")
        bounds = (f"_{_bracket(below)}" if below else "") + (f"^{_bracket(above)}" if above else "")
        return f"{sign('chr', '∫')}{bounds} {part('e')}"
    if name in {"limLow", "func"}:
        return f"{part('e') if name == 'limLow' else part('fName')} {part('lim') if name == 'limLow' else part('e')}"
    joint = {"m": "; ", "mr": ", ", "eqArr": "; "}.get(name, "")
    pieces = [office_formula_text(child, depth + 1) for child in element]
    return joint.join(piece for piece in pieces if piece or not joint)


def _bracket(text: str) -> str:
    return text if _SIMPLE.fullmatch(text) else f"({text})"


#: Elements of MathML whose parts stand above and below the first: with a script below, above, or both.
_SCRIPTS = {
    "msup": (None, 1), "mover": (None, 1), "msub": (1, None), "munder": (1, None), "msubsup": (1, 2),
    "munderover": (1, 2),
}  # fmt: skip
_UNSEEN_MATHS = frozenset("annotation annotation-xml mphantom maligngroup malignmark".split())


def mathml_text(element: _Element, depth: int = 0) -> str:
    """Return a formula in one line: fractions with a slash, powers raised (MathML 3.0, chapter 3, W3C)."""
    name = local_name(element)
    if depth > _MAX_FORMULA_DEPTH:
        return "".join(map(str, element.itertext("*")))
    if name in _UNSEEN_MATHS or not name:
        return ""
    children = [child for child in element if local_name(child) not in {"", *_UNSEEN_MATHS}]
    if not children:
        return " " if name == "mspace" else " ".join((element.text or "").split())
    parts = [mathml_text(child, depth + 1) for child in children]
    if name == "mfrac" and len(parts) == 2:
        return f"{_bracket(parts[0])}/{_bracket(parts[1])}"
    if name in _SCRIPTS:
        below, above = (parts[n] if n is not None and n < len(parts) else "" for n in _SCRIPTS[name])
        return parts[0] + _scripts(below, above)
    if name == "msqrt":
        return f"√({''.join(parts)})"
    if name == "mroot" and len(parts) == 2:
        return f"{superscript(parts[1])}√({parts[0]})"
    if name == "mfenced":
        return f"{element.get('open', '(')}{', '.join(parts)}{element.get('close', ')')}"
    joint = {"mtable": "; ", "mtr": ", "}.get(name, "")
    return joint.join(part for part in parts if part or not joint)


def _scripts(below: str, above: str) -> str:
    raised = superscript(above)
    power = raised if raised != above else f"^{_bracket(above)}" if above else ""
    return (f"_{_bracket(below)}" if below else "") + power
