// Projects: made, renamed, and the sample project.

import { problemOf, show } from "./clew.js";
import { gettext } from "./words.js";

async function send(method, address, fields) {
  const headers = { "Content-Type": "application/json" };
  const reply = await fetch(address, { method, headers, body: JSON.stringify(fields) }).catch(() => null);
  if (!reply) show(gettext("The server could not be reached."));
  else if (!reply.ok) show(await problemOf(reply));
  else return reply.json();
  return null;
}

/** Make the sample project and go to it. */
export async function openSample(button) {
  button.disabled = true;
  const project = await send("POST", "/api/bases/sample", {});
  if (project) location.assign(`/b/${encodeURIComponent(project.base)}/`);
  button.disabled = false;
}

export async function createProject(form) {
  const project = await send("POST", form.getAttribute("action"), { title: form.elements.title.value });
  if (project) location.assign(`/b/${encodeURIComponent(project.base)}/`);
}

/** Replace the title of a project by a field, until Enter or Escape. */
export function renameProject(button) {
  const line = button.closest("[data-project]");
  button.closest("details").open = false;
  const form = document.createElement("form");
  form.className = "row";
  const field = document.createElement("input");
  field.value = button.dataset.projectRename;
  field.maxLength = 80;
  field.setAttribute("aria-label", gettext("New name"));
  const save = document.createElement("button");
  save.className = "primary";
  save.textContent = gettext("Save");
  form.append(field, save);
  line.append(form);
  field.focus();
  field.select();
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") form.remove();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const renamed = await send("PATCH", line.dataset.project, { title: field.value });
    if (renamed) location.reload();
  });
}
