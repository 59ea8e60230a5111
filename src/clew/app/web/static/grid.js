// Tables of answers: begun, followed until they are complete, stopped.

import { problemOf, show } from "./clew.js";
import { gettext } from "./words.js";

const PAUSE = 1000;

function post(address, fields = {}) {
  const headers = { "Content-Type": "application/json" };
  return fetch(address, { method: "POST", headers, body: JSON.stringify(fields) }).catch(() => null);
}

const why = async (reply) => (reply ? problemOf(reply) : gettext("The server could not be reached."));

const form = document.getElementById("new-grid");
form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const questions = form.elements.questions.value.split("\n").map((line) => line.trim()).filter(Boolean);
  const boxes = [...form.querySelectorAll("[name=documents]")];
  const ticked = boxes.filter((box) => box.checked).map((box) => box.value);
  const reply = await post(form.getAttribute("action"), { questions, documents: ticked.length < boxes.length ? ticked : [] });
  if (reply?.ok) location.assign(form.dataset.page + (await reply.json()).id);
  else show(await why(reply));
});

const grid = document.getElementById("grid");

async function load() {
  const reply = await fetch(grid.dataset.src).catch(() => null);
  // HTML of our own server, in which every text is escaped.
  if (reply?.ok) grid.innerHTML = await reply.text();
  follow();
}

/** Look again as long as cells are being answered. */
function follow() {
  if (grid.querySelector("[data-running]")) setTimeout(load, PAUSE);
}

if (grid) follow();
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-grid-post]");
  if (!button) return;
  button.disabled = true;
  const reply = await post(button.dataset.gridPost);
  if (!reply?.ok) show(await why(reply));
  else if (button.dataset.gridPost.endsWith("/continue")) load();
});
