"""The messages of the web app: collected from templates, scripts and Python, and brought into the catalogues.

    python tests/app_messages.py [LANGUAGE ...]     # make words

Each catalogue, or that of each language that is named, gets the messages that are new and loses those that are gone.

What has no translation yet is printed with the place where it is used. The catalogue of a new language is begun; it
also needs a line in ``clew/app/web/pages/language.py``, and its own rule for plural forms.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from jinja2.ext import extract_from_ast

from clew.app.web.pages import language
from clew.app.web.pages.answer import STEP_WORDS
from clew.app.web.pages.language import Message
from clew.app.web.pages.render import template_environment
from clew.app.web.pages.texts import known_texts

WEB = Path(language.__file__).parents[1]
#: The functions that mark messages, with the number of texts that each takes.
FUNCTIONS = {"_": 1, "gettext": 1, "mark": 1, "ngettext": 2, "pgettext": 2}
_SCRIPT_CALL = re.compile(r'\b(n?gettext)\(\s*("(?:[^"\\]|\\.)*")(?:,\s*("(?:[^"\\]|\\.)*"))?')
#: The header of a catalogue that begins, with the plural rule of most languages of Europe.
HEADER = "Content-Type: text/plain; charset=UTF-8\nLanguage: {}\nPlural-Forms: nplurals=2; plural=(n != 1);\n"


def collect_messages() -> dict[tuple[str, str], Message]:
    """Return every message by its context and text, with the files where it is used."""
    places: dict[tuple[str, str], set[str]] = {}
    plurals: dict[tuple[str, str], str] = {}
    for place, function, texts in (*_template_calls(), *_script_calls(), *_python_calls()):
        context, text, plural = "", texts[0], ""
        if function == "pgettext":
            context, text = texts
        elif FUNCTIONS[function] == 2:
            plural = texts[1]
        key = (context, text)
        assert plurals.setdefault(key, plural) == plural, f"{text!r} has two plurals, or a plural and none"
        places.setdefault(key, set()).add(place)
    return {key: Message(key[1], plurals[key], key[0], tuple(sorted(places[key]))) for key in sorted(places)}


def _template_calls() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    environment = template_environment()
    for path in sorted((WEB / "pages" / "templates").glob("*.html")):
        tree = environment.parse(path.read_text("utf-8"))
        for _, function, texts in extract_from_ast(tree, tuple(FUNCTIONS), babel_style=False):
            yield f"templates/{path.name}", function, _constants(texts, FUNCTIONS[function], path)


def _script_calls() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for path in sorted((WEB / "static").glob("*.js")):
        for function, *texts in _SCRIPT_CALL.findall(path.read_text("utf-8")):
            values = tuple(json.loads(text) for text in texts if text)
            yield f"static/{path.name}", function, _constants(values, FUNCTIONS[function], path)


def _python_calls() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    yield from (("texts.txt", "mark", (text,)) for text in known_texts())
    yield from (("steps.tsv", "mark", (text,)) for text in STEP_WORDS.values())
    yield from (("language.py", "ngettext", texts) for texts in language.COUNTS.values())
    for path in sorted((WEB / "pages").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            size = FUNCTIONS.get(node.func.id, 0)
            texts = [item.value for item in node.args[:size] if isinstance(item, ast.Constant)]
            # What is no text is translated where it is marked.
            if size and len(texts) == size:
                yield path.name, node.func.id, _constants(texts, size, path)


def _constants(texts: object, size: int, path: Path) -> tuple[str, ...]:
    values = (texts,) if isinstance(texts, str) else tuple(texts)  # type: ignore[arg-type]
    assert len(values[:size]) == size and all(isinstance(text, str) for text in values[:size]), (path, texts)
    return values[:size]


def load_catalogue(code: str) -> dict[tuple[str, str], Message]:
    """Return the messages of a catalogue by context and text, the header among them."""
    return {
        (item.context, item.text): item for item in language.read_catalogue(language.catalogue_text(code))
    }


def render_catalogue(code: str, messages: dict[tuple[str, str], Message]) -> tuple[str, list[Message]]:
    """Return the catalogue of a language with these messages and the translations that it has, and the messages
    that have none."""
    known = load_catalogue(code) if (language.WORDS / f"{code}.po").exists() else {}
    header = known[("", "")].translations[0] if known else HEADER.format(code)
    lines = [f"# The messages of the app in the language {code}.", 'msgid ""', 'msgstr ""']
    lines += [json.dumps(line, ensure_ascii=False) for line in header.splitlines(keepends=True)]
    missing = []
    for key, message in messages.items():
        old = known.get(key, message)
        forms = count_forms(header) if message.plural else 1
        texts = old.translations if old.plural == message.plural and old.translations else ("",) * forms
        missing += [] if all(texts) else [message]
        lines += ["", f"#: {' '.join(message.places)}"]
        lines += [f"msgctxt {_quote(message.context)}"] if message.context else []
        lines.append(f"msgid {_quote(message.text)}")
        lines += [f"msgid_plural {_quote(message.plural)}"] if message.plural else []
        names = [f"msgstr[{number}]" for number in range(forms)] if message.plural else ["msgstr"]
        lines += [f"{name} {_quote(text)}" for name, text in zip(names, texts, strict=True)]
    return "\n".join(lines) + "\n", missing


def count_forms(header: str) -> int:
    """Return how many plural forms a catalogue has, by its header."""
    match = re.search(r"nplurals=(\d)", header)
    assert match is not None, header
    return int(match[1])


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


if __name__ == "__main__":
    codes = sys.argv[1:] or [code for code in language.LANGUAGES if code != language.ENGLISH.code]
    collected = collect_messages()
    for code in codes:
        catalogue, rest = render_catalogue(code, collected)
        (language.WORDS / f"{code}.po").write_text(catalogue, "utf-8")
        sys.stdout.write(f"{code}: {len(collected)} messages, {len(rest)} to translate\n")
        sys.stdout.write("".join(f"  {message.places[0]}: {message.text}\n" for message in rest))
