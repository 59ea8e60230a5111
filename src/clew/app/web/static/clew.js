// The script of every page: what a page has of the parts below is made to work; without it, pages can still be read.

import { addChoices } from "./choices.js";
import { follow, showMarkedCells } from "./question.js";
import { addWalks } from "./walk.js";
import { addViewer } from "./viewer.js";

/** Say something to those who do not see the page. */
function tell(text) {
  document.getElementById("told").textContent = text;
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
async function problemOf(reply) {
  const told = await reply.json().catch(() => ({}));
  return [told.error || `the server replied ${reply.status}`, told.hint].filter(Boolean).join(". ");
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
  tell("Removed.");
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
});

// Enter asks, Shift+Enter begins a line; not while letters are being composed.
document.addEventListener("keydown", (event) => {
  const field = event.target;
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || !field.matches?.("[data-submits]")) return;
  event.preventDefault();
  if (field.value.trim() || field.form.elements.chain?.value.trim()) field.form.requestSubmit();
});

for (const article of document.querySelectorAll(".entry")) follow(article);
addWalks(document);
showMarkedCells(document);
// A closed part of the page has no size: its tables are brought into view as it is opened.
document.addEventListener("toggle", (event) => event.target.open && showMarkedCells(event.target), true);
const viewer = document.getElementById("viewer");
if (viewer) addViewer(viewer);
const form = document.querySelector("form[data-choices]");
if (form) addChoices(form, form.dataset.choices);
