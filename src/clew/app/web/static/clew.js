// The script of every page: what a page has of the parts below is made to work; without it, pages can still be read.

import { follow, showMarkedCells } from "./question.js";
import { gettext } from "./words.js";

/** Say something to those who do not see the page. */
export function tell(text) {
  document.getElementById("told").textContent = text;
}

/** Show a message at the bottom of the page until the next one, with a button if it can be taken back. */
export function show(text, action = "", act = null) {
  const toast = document.getElementById("toast");
  toast.textContent = text;
  if (action) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = action;
    button.addEventListener("click", () => {
      button.disabled = true;
      act();
    });
    toast.append(" ", button);
  }
  const away = document.createElement("button");
  Object.assign(away, { type: "button", className: "quiet", textContent: "✕" });
  away.setAttribute("aria-label", gettext("Dismiss"));
  away.addEventListener("click", () => (toast.hidden = true));
  toast.append(" ", away);
  toast.hidden = false;
}

/** Ask before something is removed. */
function confirmed(question) {
  const dialog = document.getElementById("confirm");
  dialog.querySelector("p").textContent = question;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => {
    dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true });
  });
}

/** Return what the server says is wrong. */
export async function problemOf(reply) {
  const told = await reply.json().catch(() => ({}));
  const error = told.error ? gettext(told.error) : gettext("the server replied %(status)s", { status: `${reply.status}` });
  return [error, told.hint && gettext(told.hint)].filter(Boolean).join(". ");
}

async function remove(button) {
  if (button.dataset.confirm && !(await confirmed(button.dataset.confirm))) return;
  button.disabled = true;
  const reply = await fetch(button.dataset.delete, { method: "DELETE" });
  if (!reply.ok) {
    button.disabled = false;
    const said = document.createElement("p");
    said.className = "problem small";
    said.setAttribute("role", "alert");
    said.textContent = await problemOf(reply);
    (button.closest("li") || button.parentElement).append(said);
    return;
  }
  tell(gettext("Removed."));
  if (button.dataset.then) {
    location.assign(button.dataset.then);
    return;
  }
  const line = button.closest("li");
  const next = (line.nextElementSibling || line.previousElementSibling)?.querySelector("button, a");
  const home = document.querySelector(".home");
  line.remove();
  if (next) next.focus();
  else document.getElementById("main").focus();
  if (home) home.dispatchEvent(new CustomEvent("changed"));
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-delete]");
  if (button) remove(button);
  const trash = event.target.closest("[data-remove]");
  if (trash) import("./scope.js").then((scope) => scope.remove([trash.dataset.remove], trash.dataset.baseApi, trash.dataset.then));
  const pin = event.target.closest("[data-pin]");
  if (pin) putAside(pin);
  const sample = event.target.closest("[data-sample]");
  if (sample) import("./projects.js").then(({ openSample }) => openSample(sample));
  const renamed = event.target.closest("[data-project-rename]");
  if (renamed) import("./projects.js").then(({ renameProject }) => renameProject(renamed));
  const trashed = event.target.closest("[data-trash] [data-api]");
  if (trashed) leaveTrash(trashed);
});

document.getElementById("new-project")?.addEventListener("submit", (event) => {
  event.preventDefault();
  import("./projects.js").then(({ createProject }) => createProject(event.target));
});

/** Put a document of the trash back, or delete it for good. */
async function leaveTrash(button) {
  if (button.dataset.confirm && !(await confirmed(button.dataset.confirm))) return;
  const line = button.closest("[data-trash]");
  const reply = await send("POST", button.dataset.api, { ids: [line.dataset.trash] });
  if (!reply?.ok) return show(reply ? await problemOf(reply) : gettext("The server could not be reached."));
  show(button.dataset.confirm ? gettext("Deleted.") : gettext("Put back."));
  line.remove();
  document.getElementById("main").focus();
}

// Enter asks, Shift+Enter begins a line; not while letters are being composed.
document.addEventListener("keydown", (event) => {
  const field = event.target;
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || !field.matches?.("[data-submits]")) return;
  event.preventDefault();
  if (field.value.trim() || field.form.elements.chain?.value.trim()) field.form.requestSubmit();
});

function send(method, address, fields) {
  const headers = { "Content-Type": "application/json" };
  return fetch(address, { method, headers, body: JSON.stringify(fields) }).catch(() => null);
}

/** Put a quote aside for a memo. */
async function putAside(button) {
  const { node, text, question } = button.dataset;
  const reply = await send("POST", button.dataset.pin, { node, text, question });
  if (!reply?.ok) return show(reply ? await problemOf(reply) : gettext("The server could not be reached."));
  button.textContent = gettext("Put aside ✓");
  show(gettext("Put aside."), gettext("Show"), () => location.assign(button.dataset.pin.replace("/api/bases/", "/b/")));
}

document.addEventListener("change", async (event) => {
  const field = event.target.closest("[data-note]");
  if (!field) return;
  const reply = await send("PUT", field.dataset.note, { note: field.value });
  show(reply?.ok ? gettext("The note is saved.") : reply ? await problemOf(reply) : gettext("The server could not be reached."));
});

/** Copy the text at an address, and say so on the button. */
async function copy(button) {
  const words = button.textContent;
  const reply = await fetch(button.dataset.copy).catch(() => null);
  const text = reply?.ok ? await reply.text() : "";
  // Only pages of this machine or over HTTPS have a clipboard; elsewhere an old way still works.
  let done = Boolean(text) && (await navigator.clipboard?.writeText(text).then(() => true, () => false));
  if (text && !done) {
    const held = document.createElement("textarea");
    held.value = text;
    document.body.append(held);
    held.select();
    done = document.execCommand("copy");
    held.remove();
    button.focus();
  }
  button.textContent = done ? gettext("Copied") : gettext("It could not be copied");
  tell(button.textContent);
  setTimeout(() => (button.textContent = words), 2000);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
});

/** Load what a closed part of the page holds when it is opened for the first time. */
async function fill(details) {
  const place = details.querySelector(".part");
  if (!details.dataset.part || details.dataset.loaded) return;
  details.dataset.loaded = "yes";
  const reply = await fetch(details.dataset.part).catch(() => null);
  if (!reply?.ok) {
    delete details.dataset.loaded;
    return; // the link to a page of its own is still there
  }
  // HTML of our own server, in which every text is escaped.
  place.innerHTML = await reply.text();
  showMarkedCells(place);
  if (place.querySelector(".walk")) loadWalks(place);
}

/** Load what makes a part of the page work, and repeat then what happened there meanwhile: over a slow connection a
 * button can be pressed long before its script is there. ``late`` says which events at which elements count. */
async function addLater(part, late, load) {
  const missed = new Map();
  const note = (event) => {
    const place = event.target.closest?.(late[event.type]);
    if (place) missed.set(place, event.type);
  };
  for (const type of Object.keys(late)) part.addEventListener(type, note);
  await load();
  for (const type of Object.keys(late)) part.removeEventListener(type, note);
  for (const [place, type] of missed) place.dispatchEvent(new Event(type, { bubbles: true }));
}

const loadWalks = (root) => addLater(root, { click: ".place" }, () => import("./walk.js").then(({ addWalks }) => addWalks(root)));

/** Load the viewer when something is first opened in it, and open that. */
function addViewerLater(viewer) {
  let isLoaded = false;
  const openers = { click: "a[data-cite], a[data-source]", submit: "[data-source-form]", show: "*" };
  const open = async (event) => {
    const opener = event.target.closest?.(openers[event.type]);
    if (isLoaded || !opener || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const { addViewer } = await import("./viewer.js");
    if (!isLoaded) addViewer(viewer);
    isLoaded = true;
    if (event.type === "click") opener.click();
    else if (event.type === "submit") opener.requestSubmit();
    else opener.dispatchEvent(new CustomEvent("show", { bubbles: true }));
  };
  for (const type of Object.keys(openers)) document.addEventListener(type, open);
}

for (const article of document.querySelectorAll(".entry")) follow(article);
showMarkedCells(document);
// A closed part of the page has no size: its tables are brought into view as it is opened.
document.addEventListener("toggle", (event) => {
  if (!event.target.open) return;
  fill(event.target);
  showMarkedCells(event.target);
}, true);
// What most visits do not need is loaded when it is first used.
const viewer = document.getElementById("viewer");
if (viewer) addViewerLater(viewer);
for (const type of ["focusin", "pointerdown"]) {
  document.addEventListener(type, (event) => {
    const form = event.target.closest?.("select[name=recipe], select[name=also]")?.form;
    if (form?.dataset.choices) import("./choices.js").then(({ showChoices }) => showChoices(form));
  });
}
if (document.querySelector(".walk")) loadWalks(document);
// The chips are needed once something is chosen.
const home = document.querySelector(".home");
const loadScope = () => import("./scope.js").then(({ addScope }) => addScope());
const isChosen = Object.keys(sessionStorage).some((key) => /^clew:(picked|undo)/.test(key));
const asked = document.querySelector(".follow .scope:has(.chip)");
if (asked) addLater(asked, { click: "[data-unpick]" }, loadScope);
else if (home && isChosen) loadScope();
else document.getElementById("documents")?.addEventListener("change", loadScope, { once: true });
const sidebar = document.getElementById("history");
const pressed = { click: "[data-change]", input: "[name=words]", changed: "#history" };
if (sidebar) addLater(sidebar, pressed, () => import("./history.js").then(({ addHistory }) => addHistory(sidebar)));
