// Folders, web pages and text as sources: added, paused, read again.

import { problemOf, show } from "./clew.js";
import { gettext } from "./words.js";

const PAUSE = 150;
let timer = 0;

function send(method, address, fields) {
  const headers = { "Content-Type": "application/json" };
  return fetch(address, { method, headers, body: JSON.stringify(fields) }).catch(() => null);
}

/** Add what a form says; why that is not possible stands below the form. */
export async function addSource(form) {
  const home = document.querySelector(".home");
  const { place, tags, text, title } = form.elements;
  const names = (tags?.value || "").split(",").map((name) => name.trim()).filter(Boolean);
  const isText = form.dataset.sourceKind === "text";
  const fields = isText
    ? { text: text.value, title: title.value }
    : { kind: form.dataset.sourceKind, place: place.value, tags: names };
  form.querySelector(".problem")?.remove();
  const reply = await send("POST", `${home.dataset.api}/${isText ? "texts" : "sources"}`, fields);
  if (!reply?.ok) {
    const problem = document.createElement("p");
    problem.className = "problem";
    problem.setAttribute("role", "alert");
    problem.textContent = reply ? await problemOf(reply) : gettext("The server could not be reached.");
    form.append(problem);
    return;
  }
  form.reset();
  form.closest(".add-more").open = false;
  show(isText ? gettext("The text is being added.") : gettext("It is being read."));
  home.dispatchEvent(new CustomEvent("changed"));
}

export async function changeSource(button) {
  const fields = { pause: { paused: true }, "go-on": { paused: false }, again: { again: true } }[button.dataset.sourceChange];
  const reply = await send("PATCH", button.closest("[data-source-api]").dataset.sourceApi, fields);
  if (!reply?.ok) show(reply ? await problemOf(reply) : gettext("The server could not be reached."));
  document.querySelector(".home").dispatchEvent(new CustomEvent("changed"));
}

/** Offer the folders that a path may go on with. */
export function offerFolders(field) {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const address = `${field.form.dataset.folders}?start=${encodeURIComponent(field.value)}`;
    const reply = await fetch(address).catch(() => null);
    if (!reply?.ok) return;
    const { folders } = await reply.json();
    document.getElementById("folders").replaceChildren(...folders.map((path) => new Option(path, path)));
  }, PAUSE);
}
