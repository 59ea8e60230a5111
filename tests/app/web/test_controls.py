"""Every control of the app leads somewhere in the installation that README recommends: ``pip install '.[serve]'``.

``make integrations`` makes that environment, build/serve, and runs this: the app runs there, the browser here. A control
is anything that can be clicked, chosen or filled in. Each one of a kind is used once, on a page that is loaded afresh:
something has to happen, no request may be refused, and what is downloaded has to be what its name says.
"""

# ruff: noqa: E501 - the scripts that are run in the page
from __future__ import annotations

import http.client
import io
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import openpyxl
import pytest

from bad_files import _image_pdf as scanned_pdf
from scripted import ScriptedServer
from serve_app import FILES, PATIENCE, QUESTION, SAMPLES, waited_for

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install '.[dev]'"
)

ROOT = Path(__file__).parents[3]
BIN = ROOT / "build" / "serve" / "bin"
TEMPLATES = ROOT / "src" / "clew" / "app" / "web" / "pages" / "templates"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (BIN / "clew").exists(), reason="no environment with serve alone: make integrations"
    ),
]

#: Seconds that a press on a control may take to have its effect, at most.
LONGEST = 60.0
#: Seconds after which no further page is looked at, however slow the machine is.
LIMIT = 1200.0
#: What a page says when something that it offers cannot be had.
FAILURES = "could not be (?:reached|copied)|is not installed"
#: What is written into fields, by their names.
WORDS = {
    "question": QUESTION, "called": "Bittern", "name": "Bittern", "words": "lighter", "find": "lighter",
    "questions": "Who is the hirer?", "page": "1", "tag": "river", "tags": "river", "title": "The quay",
    "text": "The lamp at Fenner Mouth is lit at dusk.", "where": "type = pdf", "model": "scripted",
    "key": "the-right-key", "chain": "Heron Queen >> captain >> #1; final answer: #1",
}  # fmt: skip
#: Attributes of controls that appear only with more documents than are here, or with a model elsewhere; and the tests
#: that press them.
ELSEWHERE = {
    "data-list-all": "test_browser_scope.py::test_a_long_list_is_shown_whole",
    "data-has-key": "test_browser_own.py::test_a_model_elsewhere_is_used_no_more_and_its_key_forgotten",
}

#: Lists the controls of a page that can be used now: an index, what kind it is, and what it does when it is used.
LIST = r"""() => {
  const shape = (text) => (text || "").replace(/[0-9a-f]{12,}|\d+/g, "N").replace(/=[^&#]*/g, "=");
  const root = document.querySelector("dialog[open]") || document;
  const controls = root.querySelectorAll("a[href], button, summary, select, input:not([type=hidden]), textarea");
  window.probed = [...controls];
  return window.probed.map((each, index) => {
    if (each.closest("[hidden], dialog:not([open]), noscript, [aria-disabled=true]") || each.disabled) return null;
    if (each.closest(".skip") || !(each.checkVisibility() || each.parentElement.closest("details:not([open])"))) return null;
    const data = Object.keys(each.dataset).sort();
    const told = ["pick", "turn", "zoom", "sourceChange", "pinned", "sourceKind", "api"].filter((name) => name in each.dataset);
    const form = each.form || each.closest("form");
    const value = each.tagName === "BUTTON" && each.value.length < 12 ? each.value : "";
    const kind = [
      each.tagName, each.type || "", each.name || "", each.id.replace(/(d|g|follow)-.*/, "$1"), each.className, value, data.join(" "),
      told.map((name) => shape(each.dataset[name])).join(" "),
      each.tagName === "A" ? shape(each.getAttribute("href")) : "",
      form ? `${form.id} ${form.className} ${form.dataset.sourceKind || ""} ${shape(form.getAttribute("action"))}` : "",
      each.tagName === "BUTTON" && !data.length && each.name !== "question" ? shape(each.textContent.trim()) : "",
      each.tagName === "SUMMARY" ? each.parentElement.className : "",
    ].join("|");
    return { index, kind, tag: each.tagName, type: each.type || "", data };
  }).filter(Boolean);
}"""
#: Everything that a control may change on a page.
STATE = r"""() => {
  const fields = [...document.querySelectorAll("input, select, textarea")].map((each) => `${each.checked}${each.value}`);
  return [location.href, document.body.innerHTML, fields.join(), window.probed?.indexOf(document.activeElement), scrollY].join();
}"""
#: Counts what the scripts of a page are fetching, and what they have put off: for a moment, which is waited for, or for
#: so long that the page is loaded afresh instead.
COUNT = """(() => {
  const [fetch, setTimeout, clearTimeout] = [window.fetch, window.setTimeout, window.clearTimeout];
  const timers = new Map();
  let fetching = 0;
  window.fetch = (...words) => { fetching += 1; return fetch(...words).finally(() => setTimeout(() => (fetching -= 1))); };
  for (const name of ["text", "json", "blob"]) {
    const read = Response.prototype[name];
    Response.prototype[name] = function () { fetching += 1; return read.call(this).finally(() => setTimeout(() => (fetching -= 1))); };
  }
  window.setTimeout = (act, pause = 0, ...words) => {
    const id = setTimeout(() => { act(...words); timers.delete(id); }, pause);
    timers.set(id, pause);
    return id;
  };
  window.clearTimeout = (id) => { timers.delete(id); clearTimeout(id); };
  window.isBusy = () => document.readyState !== "complete" || fetching > 0 || [...timers.values()].some((pause) => pause < 600);
  window.isWaiting = () => timers.size > 0;
})()"""
#: Opens what is closed, so that it loads what it holds.
OPEN = """() => document.querySelectorAll("details:not([open]):not(.menu)").forEach((each) => (each.open = true))"""
LOADED = """() => [...document.querySelectorAll("details[data-part]")].every((each) => each.dataset.loaded)"""
#: Brings a control to where a person would have it: what it is in is open, the form that it sends is filled in.
READY = r"""([index, words]) => {
  const control = window.probed[index];
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(control)) menu.open = false;
  for (let each = control.parentElement?.closest("details"); each; each = each.parentElement?.closest("details")) each.open = true;
  if (control.tagName === "SUMMARY") control.parentElement.open = false;
  if (control.type === "radio") control.checked = false;
  // That it has the focus and is in view is not what comes of pressing it.
  control.scrollIntoView({ block: "center", behavior: "instant" });
  control.focus({ preventScroll: true });
  if (control.type !== "submit" || !control.form) return control;
  const selects = [...control.form.querySelectorAll("select[required]")];
  selects.forEach((each, number) => (each.selectedIndex = number + 1));
  for (const each of control.form.querySelectorAll("input, textarea")) {
    if (["hidden", "checkbox", "radio", "file"].includes(each.type) || each.closest("[hidden]")) continue;
    if (each.name === "chain" || each.name === "where") continue;
    each.value = words[`${control.form.dataset.sourceKind || ""} ${each.name}`.trim()] ?? words[each.name] ?? each.value;
  }
  return control;
}"""
#: Whether a page is still the one that was loaded for its controls, and nothing of it waits for long to change back.
STILL = "() => Boolean(window.probed) && !window.isWaiting()"


@dataclass
class Running:
    """``clew serve`` of the environment with the extra serve alone."""

    port: int
    home: Path
    model: ScriptedServer
    base: str = "harbour"

    def fetch(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", path)
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        return reply.status, content

    def request(self, method: str, path: str, shape: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        body = None if shape is None else json.dumps(shape)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        content = reply.read()
        assert reply.status < 400, (method, path, content)
        connection.close()
        return json.loads(content)

    def call(self, method: str, path: str, shape: Any = None) -> Any:
        """Call the API of the base."""
        return self.request(method, f"/api/bases/{self.base}{path}", shape)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CLEW_", "PYTHON", "OPENAI_"))
    }
    kept["CLEW_ENCODER"] = "none"  # making vectors needs no package, and takes a while
    return kept | {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "PATH": f"{BIN}{os.pathsep}{kept['PATH']}",
    }


def run_clew(
    *words: str | Path, environment: dict[str, str], cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "clew", *map(str, words)], env=environment, cwd=cwd, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def running(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A base with all that has a page: documents, a graph, a question, a quote put aside, two tables of answers, two
    documents in the trash, a folder that is followed, and an empty project."""
    folder = tmp_path_factory.mktemp("serve")
    files = [SAMPLES / name for name in FILES]
    extra = [folder / "note.md", folder / "draft.md"]
    for path in extra:
        path.write_text(f"# {path.stem.title()}\n\nThe hirer pays a day.\n")
    kb = folder / "harbour"
    added = run_clew("add", *files, *extra, "--kb", kb, environment=environment)
    assert added.returncode == 0, added.stderr
    graph = ROOT / "samples" / "graphs" / "oskell-people-and-ships.tsv"
    assert run_clew("graph", "add", graph, "--kb", kb, environment=environment).returncode == 0
    followed = folder / "papers"
    followed.mkdir()
    (followed / "weir.md").write_text("# The weir\n\nThe weir was raised by Ines Harrow.\n")
    (followed / "plan.png").write_bytes(PNG)
    scanned_pdf(followed / "scan.pdf")
    with ScriptedServer() as model:
        model.key = "the-right-key"
        process = subprocess.Popen(
            [BIN / "clew", "serve", "--kb", str(kb), "--port", "0"], cwd=ROOT, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env={**environment, "OPENAI_BASE_URL": model.url},
        )  # fmt: skip
        try:
            assert process.stdout is not None
            port = int(re.fullmatch(r"clew: http://127\.0\.0\.1:(\d+)\n", process.stdout.readline())[1])
            app = Running(port, folder, model)
            prepare(app, [path.name for path in extra], followed)
            yield app
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)


def prepare(app: Running, removed: list[str], followed: Path) -> None:
    """Make what the pages show."""
    asked = app.call("POST", "/questions", {"question": QUESTION})
    waited_for(
        lambda: app.call("GET", f"/questions/{asked['id']}").get("state") not in {"waiting", "running"}
    )
    keys = {line["document"]: line["key"] for line in app.call("GET", "/documents")["documents"]}
    hits = app.call("POST", "/search", {"question": QUESTION})["hits"]
    app.call("POST", "/basket", {"node": hits[0]["id"], "text": "", "question": QUESTION})
    app.call("POST", "/documents/remove", {"documents": [keys[name] for name in removed]})
    # The first is of all documents; of those that come later its cells are missing.
    for picked in ([], [keys[FILES[0]], keys[FILES[1]]]):
        grid = app.call("POST", "/grids", {"questions": ["Who is the hirer?"], "documents": picked})
        waited_for(lambda id=grid["id"]: app.call("GET", f"/grids/{id}")["state"] == "ended")
    app.call("POST", "/documents/tags", {"documents": [keys[FILES[0]]], "add": ["lease"]})
    app.request("POST", "/api/bases", {"title": "The empty one"})
    app.call("POST", "/sources", {"kind": "folder", "place": str(followed), "tags": []})
    waited_for(
        lambda: any(source["state"].get("failed") for source in app.call("GET", "/sources")["sources"])
    )


class Hand:
    """Uses the controls of pages one after another, each kind once."""

    def __init__(self, browser: Any, app: Running, words: dict[str, str]) -> None:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.context, self.app, self.words = context, app, words
        context.add_init_script(COUNT)
        self.page = context.new_page()
        self.page.set_default_timeout(1000 * LONGEST)
        self.used: dict[str, str] = {}  # the kind of each control, and the scene where it was used
        self.later: dict[str, Scene] = {}  # those that remove something
        self.data: set[str] = set()
        self.problems: list[str] = []
        self.downloads: list[Any] = []
        self.asked = 0
        self.deadline = time.monotonic() + LIMIT
        self.pending: set[Any] = set()
        self.popups: list[Any] = []
        context.on("page", self._watch)
        self._watch(self.page)

    def _watch(self, page: Any) -> None:
        if page is self.page:
            page.on("framenavigated", lambda frame: self.pending.clear())
            page.on("requestfinished", lambda request: self.pending.discard(request))
            page.on("requestfailed", lambda request: self.pending.discard(request))
        else:
            self.popups.append(page)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", self._note_message)
        page.on("download", lambda download: self.downloads.append(download))
        page.on("request", lambda request: self._count(page, request))
        page.on(
            "response",
            lambda reply: reply.status >= 400 and self.problems.append(f"{reply.status} {reply.url}"),
        )

    def _note_message(self, message: Any) -> None:
        if message.type == "error":
            self.problems.append(f"{message.text} ({message.location.get('url')})")

    def _count(self, page: Any, request: Any) -> None:
        # A page asks for itself when its project changes, whatever is pressed.
        if request.resource_type in {"eventsource", "image"} or (
            request.resource_type == "fetch" and request.url == page.url
        ):
            return
        self.asked += 1
        # What scripts fetch the page counts itself, until they have read it: not all of it is read to the end.
        if page is self.page and request.resource_type != "fetch":
            self.pending.add(request)

    def settle(self) -> None:
        """Wait until what was asked for has come; what a page was left for comes no more."""
        quiet, deadline = 0, time.monotonic() + LONGEST
        while quiet < 2 and time.monotonic() < deadline:
            self.page.wait_for_timeout(15)
            try:
                is_busy = self.pending or self.page.evaluate("() => window.isBusy()")
            except playwright.Error:  # the page was left while it was asked
                is_busy = True
            quiet = 0 if is_busy else quiet + 1

    def load(self, scene: Scene) -> dict[str, dict[str, Any]]:
        """Open a page afresh, with all that it has open; return the first of each kind of its controls."""
        assert time.monotonic() < self.deadline, (
            f"{len(self.used)} controls took {LIMIT:.0f} s: {self.problems}"
        )
        self.pending.clear()
        self.context.clear_cookies()  # a language and a theme
        if self.page.url.startswith("http"):
            self.evaluate("sessionStorage.clear()")  # what was chosen before stays chosen otherwise
        self.go_to(scene.path)
        scene.prepare(self.page)
        if not self.page.locator("dialog[open]").count():
            self.page.evaluate(OPEN)
            self.page.wait_for_function(LOADED)
        self.settle()
        return self.list_controls()

    def go_to(self, path: str) -> None:
        """Open a page, also where a control that was pressed sends the browser elsewhere at that moment."""
        address = f"http://127.0.0.1:{self.app.port}{path}"
        for _ in range(3):
            try:
                self.page.goto(address, wait_until="load")
                return
            except playwright.Error as error:
                if not re.search("ERR_ABORTED|interrupted by another navigation", str(error)):
                    raise
                self.settle()
        self.page.goto(address, wait_until="load")

    def evaluate(self, script: str) -> Any:
        """Return what a script says of the page, or of the page after it where it is being left."""
        for _ in range(3):
            try:
                return self.page.evaluate(script)
            except playwright.Error:
                self.settle()
        return self.page.evaluate(script)

    def list_controls(self) -> dict[str, dict[str, Any]]:
        controls: list[dict[str, Any]] = self.evaluate(LIST)
        first: dict[str, dict[str, Any]] = {}
        for control in controls:
            first.setdefault(control["kind"], control)
        return first

    def look_at(self, scene: Scene) -> None:
        """Use each control of a page whose kind was not used before, and those that come with one while they are there;
        leave those that remove something for later."""
        controls = self.load(scene)
        assert controls, (scene.path, self.page.content()[:500], self.problems)
        self.later |= {kind: scene for kind in controls if removes(kind) and self.is_new(kind)}
        wanted = list(filter(self.is_new, controls))
        brought: list[str] = []
        is_fresh = True
        while wanted or brought:
            kind = next((kind for kind in [*brought, *wanted] if kind in controls), "")
            if kind:
                is_used = self.use(scene, controls[kind], is_fresh or kind in brought)
                controls = self.list_controls() if is_used and self.evaluate(STILL) else {}
                wanted, brought = list(filter(self.is_new, wanted)), list(filter(self.is_new, controls))
                brought = [kind for kind in brought if kind not in wanted and not removes(kind)]
            elif is_fresh:
                self.problems += [
                    f"{scene.path}: it is there at one time and not at another: {kind}" for kind in wanted
                ]
                return
            elif wanted:
                controls, brought = self.load(scene), []
            else:
                return
            is_fresh = not kind

    def remove(self, scene: Scene, kind: str) -> None:
        """Use a control that removes something, and those that come with it."""
        controls = self.load(scene)
        if kind not in controls:
            self.problems.append(f"{scene.path}: no longer there: {kind}")
        while kind in controls:
            self.use(scene, controls[kind])
            controls = self.list_controls() if self.evaluate(STILL) else {}
            kind = next((kind for kind in controls if self.is_new(kind) and not removes(kind)), "")

    def is_new(self, kind: str) -> bool:
        return kind not in self.used and kind not in self.later

    def use(self, scene: Scene, control: dict[str, Any], is_fresh: bool = True) -> bool:
        """Use one control; note what is wrong with what came of it.

        Where nothing came of it, and the page is as another control left it, return False: it is used once more when
        the page is loaded.
        """
        kind, before, began = control["kind"], len(self.problems), time.monotonic()
        for _ in range(2):
            try:
                problem = "" if self.press(control) else "nothing happens"
            except playwright.Error as error:
                problem = str(error).splitlines()[0]
            if not re.search("not attached|Timeout", problem):
                break
            # What it is in was drawn anew after the controls were listed, or was closed with it.
            control = self.list_controls().get(kind, control)
        is_used = is_fresh or not problem
        if is_used:
            self.problems += [problem] * bool(problem)
            self.used[kind] = scene.path
            self.data |= {re.sub(r"([A-Z])", r"-\1", f"data-{name}").lower() for name in control["data"]}
        self.problems[before:] = [f"{scene.path}: {kind}: {problem}" for problem in self.problems[before:]]
        words = [
            f"{len(self.used):4} {time.monotonic() - began:5.2f} s {scene.path} {kind}",
            problem,
            *self.problems[before:],
        ]
        sys.stderr.write("\n     ".join(str(word) for word in words if word) + "\n")
        return is_used

    def press(self, control: dict[str, Any]) -> bool:
        """Press, choose or fill in a control, and see what comes of it; return whether anything does."""
        page = self.page
        place = page.evaluate_handle(READY, [control["index"], self.words]).as_element()
        page.evaluate(f"() => (window.before = ({STATE})())")
        asked, downloads, popups = self.asked, len(self.downloads), len(self.popups)
        if control["type"] == "file":
            place.set_input_files(
                [{"name": "mill.csv", "mimeType": "text/csv", "buffer": b"Mill,burned in,1920\n"}]
            )
        elif control["tag"] == "SELECT":
            self.choose_another(place)
        elif control["tag"] in {"TEXTAREA", "INPUT"} and control["type"] not in {"checkbox", "radio"}:
            words = "Bittern" if place.input_value() != "Bittern" else "Heron Queen"
            number = "2" if place.input_value() != "2" else "1"
            place.fill(number if control["type"] == "number" else words)
        else:
            place.click()
        self.settle()
        if self.evaluate("() => document.querySelector('#confirm[open]') !== null"):
            # Nothing happens to what is kept.
            page.locator("#confirm button[value=no]").click()
            self.settle()
            place.click()
            page.locator("#confirm button[value=yes]").click()
            self.settle()
        for _ in range(50):  # downloads and other windows come by themselves
            happened = self.asked > asked or len(self.downloads) > downloads or len(self.popups) > popups
            happened = happened or self.evaluate(f"() => window.before !== ({STATE})()")
            if happened:
                break
            page.wait_for_timeout(40)
        lines = self.evaluate("() => document.body.innerText").splitlines()
        self.problems += [line for line in lines if re.search(FAILURES, line)]
        for download in self.downloads[downloads:]:
            check_file(download.suggested_filename, Path(download.path()).read_bytes())
        for popup in self.popups[popups:]:
            popup.close()
        return bool(happened)

    def choose_another(self, place: Any) -> None:
        """Choose the last of a list's options, or the first where the last is chosen now."""
        values = place.evaluate(
            "each => [...each.options].filter((one) => !one.disabled).map((one) => one.value)"
        )
        place.select_option(values[-1] if place.input_value() != values[-1] else values[0])


def removes(kind: str) -> bool:
    """Return whether a control takes something away that other pages show."""
    return bool(re.search(r"\b(?:delete|remove|trash|modelRemove)\b|danger|trash/", kind))


def check_file(name: str, content: bytes) -> None:
    """Check that a file is what its name says."""
    suffix = Path(name).suffix
    if suffix == ".xlsx":
        assert openpyxl.load_workbook(io.BytesIO(content)).active.max_row > 1, name
    elif suffix == ".docx":
        assert "word/document.xml" in zipfile.ZipFile(io.BytesIO(content)).namelist(), name
    elif suffix == ".json":
        assert "error" not in json.loads(content), name
    else:
        assert suffix in {".csv", ".md", ".pdf", ".txt", ".html"}, name
        assert content and b'"error"' not in content, name


@dataclass(frozen=True)
class Scene:
    """A page, and what is done before its controls are looked for."""

    path: str
    prepare: Callable[[Any], object] = field(default=lambda page: None)


def tick_two(page: Any) -> None:
    for number in (0, 1):
        page.locator("#documents input[type=checkbox][value]").nth(number).click()
    page.wait_for_selector(".picked:not([hidden])")


def open_tags(page: Any) -> None:
    tick_two(page)
    page.click("[data-pick=tag]")
    page.wait_for_selector("#tagging[open]")


def open_viewer(page: Any) -> None:
    page.locator("a[data-cite], a[data-source]").first.click()
    page.wait_for_selector("#viewer:not([hidden]) .source")


def choose_service(page: Any) -> None:
    page.select_option("[name=service]", "other")


def list_scenes(app: Running) -> list[Scene]:
    """Return all kinds of pages, those last that change what other pages show."""
    base = f"/b/{app.base}"
    [question, *_] = app.call("GET", "/questions")["questions"]
    keys = {line["document"]: line["key"] for line in app.call("GET", "/documents")["documents"]}
    pdf, text, table = (f"{base}/d/{keys[name]}" for name in FILES)
    grid, unfinished, *_ = app.call("GET", "/grids")["grids"]
    graph = quote(app.call("GET", "/graphs")["graphs"][0]["graph"])
    empty = next(one["base"] for one in app.request("GET", "/api/bases")["bases"] if one["base"] != app.base)
    pair = f"before={keys[FILES[0]]}&after={keys[FILES[1]]}"
    return [
        Scene("/"), Scene(f"{base}/"), Scene(f"{base}/?find=a&tag=lease"), Scene(f"{base}/", tick_two), Scene(f"{base}/", open_tags),
        Scene(f"{base}/?words=hirer"),
        Scene(f"{base}/q/{question['id']}"), Scene(f"{base}/q/{question['id']}", open_viewer),
        Scene(f"{base}/q/{question['id']}/how"), Scene(f"{base}/q/{question['id']}/cite/1"),
        Scene(pdf), Scene(pdf, open_viewer), Scene(f"{pdf}?at=3"), Scene(f"{pdf}/find?words=lighter"),
        Scene(f"{pdf}/page?page=1"), Scene(text), Scene(f"{text}?at=2"), Scene(table), Scene(f"{table}?at=2"),
        Scene(f"{base}/g/{graph}?called=Bittern"), Scene(f"{base}/about"), Scene(f"{base}/about?name=Bittern"),
        Scene(f"{base}/changes"), Scene(f"{base}/changes?{pair}"), Scene(f"{base}/basket"),
        Scene(f"{base}/grids"), Scene(f"{base}/grids/{grid['id']}"), Scene(f"{base}/grids/{unfinished['id']}"),
        Scene(f"{base}/removed"),
        Scene("/projects"), Scene("/api/docs"), Scene("/settings"), Scene("/settings", choose_service),
        # What the settings have chosen can be taken back; the empty project gets the sample documents.
        Scene("/settings"), Scene(f"/b/{empty}/"), Scene("/projects"),
    ]  # fmt: skip


def test_what_the_controls_need_is_installed(running: Running, environment: dict[str, str]) -> None:
    """The table of answers as an Excel file, the field for a key, the graphs that the button offers; and the hints."""
    [grid, *_] = running.call("GET", "/grids")["grids"]
    status, content = running.fetch(f"/api/bases/{running.base}/grids/{grid['id']}/file?form=xlsx")
    assert status == 200 and openpyxl.load_workbook(io.BytesIO(content)).sheetnames == ["answers", "quotes"]
    settings = running.fetch("/settings")[1].decode()
    assert 'name="key"' in settings and "pip install &#39;.[multilingual]&#39;" in settings
    home = running.fetch(f"/b/{running.base}/")[1].decode()
    offered = re.search(r'id="graph-files"[^>]* accept="([^"]*)"', home)[1].split(",")
    assert {".csv", ".jsonl"} <= set(offered) and not {".parquet", ".ttl"} & set(offered)
    assert "pictures are left out (1). To read text in pictures: pip install &#39;.[ocr]&#39;" in home
    assert "it looks scanned; to read text in pictures: pip install &#39;.[ocr]&#39;" in home
    chosen = running.request("POST", "/api/setup/models", {"name": running.model.llm, "key": "the-right-key"})
    assert chosen["id"] == "scripted"
    running.request("POST", "/api/setup/models/remove", {"name": running.model.llm, "key": True})
    asked = run_clew(
        "sql", "SELECT 1", "--kb", running.home / "harbour", environment=environment, cwd=running.home
    )
    assert (
        asked.returncode == 2
        and f"Install it: pip install '.[tables]'\n      In the folder {ROOT}\n" in asked.stderr
    )


def test_every_control_leads_somewhere(running: Running, browser: Any, tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text("# One\n\nThe first.\n")
    words = {
        **WORDS,
        "folder place": str(tmp_path),
        "page place": "http://127.0.0.1:9/report",
        "url": running.model.url,
    }
    hand = Hand(browser, running, words)
    for scene in list_scenes(running):
        hand.look_at(scene)
    for kind, scene in sorted(hand.later.items(), key=lambda item: rank(item[0])):
        hand.remove(scene, kind)
    hand.context.close()
    assert not hand.problems, "\n".join(hand.problems)
    assert len(hand.used) > 120, sorted(hand.used)
    # Every control that a template has was used, as far as its attributes tell them apart.
    tags = [
        tag
        for path in TEMPLATES.glob("*.html")
        for tag in re.findall(r"<(?:a|button|input|select)\b[^>]*", path.read_text())
    ]
    named = {
        name for tag in tags for name in re.findall(r"\b(data-[a-z-]+)", re.sub(r"{%.*?%}|{{.*?}}", " ", tag))
    }
    assert sorted(named - hand.data - set(ELSEWHERE)) == []
    for place in ELSEWHERE.values():
        file, test = place.split("::")
        assert f"def {test}(" in (Path(__file__).parent / file).read_text()


def rank(kind: str) -> int:
    """Return a later place for a control that takes more away."""
    order = (
        "basket",
        "delete now",
        "model",
        "trash",
        "sources",
        "grids",
        "questions",
        "graphs",
        "baseApi",
        "remove|",
        "delete then",
    )
    return max((number for number, word in enumerate(order) if word in kind), default=0)
