// What a question is asked of: documents that are chosen in the list, as chips in the box; tags; removal with undo.

import { problemOf, show, tell } from "./clew.js";
import { morph } from "./morph.js";
import { gettext, ngettext } from "./words.js";

/** Chips that are shown one by one; the rest is a number. */
const SHOWN = 6;

/** Return what a box asks, in words. */
function words(documents, graphs, total) {
  if (!documents && !graphs) return total > 1 ? ngettext("Asking all %(num)s document", "Asking all %(num)s documents", total) : "";
  const parts = [];
  if (documents) parts.push(ngettext("Asking %(picked)s of %(num)s document", "Asking %(picked)s of %(num)s documents", total, { picked: documents }));
  if (graphs) parts.push(ngettext("Asking %(num)s graph", "Asking %(num)s graphs", graphs));
  return parts.join(gettext(", "));
}

/** The chips below an answer: what its question was asked of, which a follow-up keeps unless it is taken away. */
function addChips(scope) {
  scope.addEventListener("click", (event) => {
    const button = event.target.closest("[data-unpick]");
    if (!button) return;
    const next = button.closest(".chip").nextElementSibling || button.closest(".chip").previousElementSibling;
    button.closest(".chip").remove();
    const count = (kind) => scope.querySelectorAll(`input[name=${kind}]`).length;
    scope.querySelector(".what").textContent = words(count("documents"), count("graphs"), Number(scope.dataset.total));
    tell(scope.querySelector(".what").textContent);
    (next?.querySelector("button") || scope.closest("form").querySelector("textarea")).focus();
  });
}

/** The home page: the list is where documents are chosen, and the choice stays while the list is searched. */
function addPicking(home) {
  const store = `clew:picked:${home.dataset.base}`;
  const holder = document.getElementById("documents");
  const picked = new Map(readStored(store));
  // An empty project gets its box with the first document.
  const box = () => document.querySelector("#ask .scope") || document.createElement("div");
  const what = () => box().querySelector(".what").textContent;

  const boxes = () => [...holder.querySelectorAll("input[form=ask], input[data-box]")];
  const keyOf = (each) => `${each.name || each.dataset.box} ${each.value}`;

  /** Bring boxes, chips and buttons in line with the choice. */
  function render() {
    for (const each of boxes()) {
      // The chips hold the fields of the form.
      if (each.name) {
        each.dataset.box = each.name;
        each.removeAttribute("name");
      }
      each.checked = picked.has(keyOf(each));
    }
    const kinds = [...picked.keys()].map((key) => key.split(" ")[0]);
    const documents = kinds.filter((kind) => kind === "documents").length;
    const scope = box();
    delete scope.dataset.keep;
    const fresh = scope.cloneNode(false);
    const asked = document.createElement("span");
    asked.className = "what";
    asked.textContent = words(documents, kinds.length - documents, Number(scope.dataset.total));
    fresh.append(asked);
    let count = 0;
    for (const [key, name] of picked) {
      const chip = chipOf(key, name);
      chip.hidden = ++count > SHOWN;
      fresh.append(" ", chip);
    }
    if (picked.size > SHOWN) {
      const rest = document.createElement("span");
      rest.textContent = ` ${ngettext("and %(num)s more", "and %(num)s more", picked.size - SHOWN)} `;
      fresh.append(rest);
    }
    if (picked.size) {
      const all = document.createElement("button");
      all.type = "button";
      all.className = "quiet";
      all.dataset.pick = "clear";
      all.textContent = gettext("Ask all");
      fresh.append(all);
    }
    morph(scope, fresh);
    // While something is chosen, what is asked is the page's; else the server's words are the same.
    if (picked.size) scope.dataset.keep = "";
    const bar = holder.querySelector(".picked");
    if (bar) {
      bar.hidden = !documents;
      bar.querySelector("[data-pick=compare]").hidden = documents !== 2;
      bar.querySelector(".count").textContent = ngettext("%(num)s chosen", "%(num)s chosen", documents);
    }
    const every = document.getElementById("all-shown");
    if (every) {
      const shown = boxes().filter((each) => each.dataset.box === "documents");
      every.checked = shown.length > 0 && shown.every((each) => each.checked);
      every.indeterminate = !every.checked && shown.some((each) => each.checked);
    }
    if (picked.size) sessionStorage.setItem(store, JSON.stringify([...picked]));
    else sessionStorage.removeItem(store);
  }

  function chipOf(key, name) {
    const [kind, ...value] = key.split(" ");
    const chip = document.createElement("span");
    chip.className = "chip";
    const called = document.createElement("bdi");
    called.textContent = name;
    const field = document.createElement("input");
    Object.assign(field, { type: "hidden", name: kind, value: value.join(" ") });
    const away = document.createElement("button");
    Object.assign(away, { type: "button", className: "quiet", textContent: "✕" });
    away.dataset.unpick = key;
    away.setAttribute("aria-label", gettext("Do not ask only %(name)s", { name }));
    chip.append(called, field, away);
    return chip;
  }

  function set(each, on) {
    if (on) picked.set(keyOf(each), each.dataset.name);
    else picked.delete(keyOf(each));
  }

  const keys = () => [...picked.keys()].filter((key) => key.startsWith("documents ")).map((key) => key.slice(10));

  holder.addEventListener("change", (event) => {
    if (event.target.id === "all-shown") {
      for (const each of boxes()) if (each.dataset.box === "documents") set(each, event.target.checked);
    } else if (event.target.dataset.box) {
      set(event.target, event.target.checked);
    } else return;
    render();
    tell(what());
  });

  home.addEventListener("click", (event) => {
    const away = event.target.closest("[data-unpick]");
    const action = event.target.closest("[data-pick]")?.dataset.pick;
    if (away) picked.delete(away.dataset.unpick);
    else if (action === "clear") picked.clear();
    else {
      if (action === "ask") document.getElementById("question").focus();
      else if (action === "remove") remove(keys());
      else if (action === "compare") {
        const [before, after] = keys();
        location.assign(`/b/${encodeURIComponent(home.dataset.base)}/changes?before=${before}&after=${after}`);
      }
      else if (action === "tag") tag(keys());
      return;
    }
    render();
    tell(what());
    document.getElementById("question").focus();
  });

  home.addEventListener("removed", (event) => {
    for (const key of event.detail) picked.delete(`documents ${key}`);
  });
  home.addEventListener("listed", render);

  async function tag(documents) {
    const dialog = document.getElementById("tagging");
    const field = dialog.querySelector("input");
    field.value = "";
    dialog.returnValue = "";
    dialog.querySelector("p").textContent = ngettext("Tag %(num)s document", "Tag %(num)s documents", documents.length);
    dialog.showModal();
    await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
    const name = field.value.trim();
    if (!name || !["add", "remove"].includes(dialog.returnValue)) return;
    const reply = await send(`${home.dataset.api}/documents/tags`, { documents, [dialog.returnValue]: [name] });
    if (!reply.ok) return show(await problemOf(reply));
    show(dialog.returnValue === "add" ? gettext("Tagged “%(name)s”.", { name }) : gettext("The tag “%(name)s” was taken away.", { name }));
    home.dispatchEvent(new CustomEvent("changed"));
  }

  // What was ticked before this was loaded.
  const every = document.getElementById("all-shown");
  for (const each of boxes()) if (each.checked || (every?.checked && each.name === "documents")) set(each, true);
  render();
}

/** Where the page to go on with finds what was removed on the page before. */
const UNDO = "clew:undo";

/** Move documents to the trash, and offer to put them back: here, or on the page ``then``. */
export async function remove(documents, api = "", then = "") {
  const home = document.querySelector(".home");
  const base = api || home.dataset.api;
  const reply = await send(`${base}/documents/remove`, { documents });
  if (!reply.ok) return show(await problemOf(reply));
  const { trash } = await reply.json();
  if (then) {
    sessionStorage.setItem(UNDO, JSON.stringify([base, trash]));
    location.assign(then);
    return;
  }
  home.dispatchEvent(new CustomEvent("removed", { detail: documents }));
  home.dispatchEvent(new CustomEvent("changed"));
  offerUndo(base, trash);
}

function offerUndo(base, trash) {
  const home = document.querySelector(".home");
  const what = ngettext("%(num)s document was removed.", "%(num)s documents were removed.", trash.length);
  show(what, gettext("Undo"), async () => {
    const back = await send(`${base}/trash/restore`, { ids: trash });
    show(back.ok ? gettext("Put back.") : await problemOf(back));
    home.dispatchEvent(new CustomEvent("changed"));
  });
}

function send(address, fields) {
  return fetch(address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(fields) });
}

function readStored(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name)) || [];
  } catch {
    return [];
  }
}

let added = false;

export function addScope() {
  if (added) return;
  added = true;
  const home = document.querySelector(".home");
  if (home) addPicking(home);
  const undone = readStored(UNDO);
  sessionStorage.removeItem(UNDO);
  if (home && undone.length) offerUndo(...undone);
  for (const other of document.querySelectorAll(".follow .scope")) addChips(other);
}
