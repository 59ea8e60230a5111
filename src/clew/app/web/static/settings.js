// Settings: the theme, the language, the language model, languages of projects.

import { problemOf, show } from "./clew.js";
import { gettext } from "./words.js";

const YEAR = 31_536_000;

document.addEventListener("change", async (event) => {
  const field = event.target;
  if (field.name === "language") {
    keep("clew_language", field.value);
    location.reload();
  } else if (field.name === "theme") {
    keep("clew_theme", field.value);
    if (field.value) document.documentElement.dataset.theme = field.value;
    else delete document.documentElement.dataset.theme;
  } else if (field.name === "service") {
    const other = document.querySelector("[data-other]");
    other.hidden = field.value !== "other";
    other.querySelector("input").required = !other.hidden;
  } else if (field.dataset.languages) {
    const reply = await post(field.dataset.languages, { name: field.value });
    show(reply?.ok ? gettext("The documents are being prepared for it.") : await why(reply));
  }
});

/** Keep a choice in this browser; "" forgets it. */
function keep(name, value) {
  document.cookie = `${name}=${value}; path=/; max-age=${value ? YEAR : 0}; samesite=strict`;
}

function post(address, fields) {
  const headers = { "Content-Type": "application/json" };
  return fetch(address, { method: "POST", headers, body: JSON.stringify(fields) }).catch(() => null);
}

const why = async (reply) => (reply ? problemOf(reply) : gettext("The server could not be reached."));

/** Use a model, and show the page again with it. */
async function use(name, key, button, place) {
  button.disabled = true;
  place.querySelector(".problem")?.remove();
  const reply = await post("/api/setup/models", { name, key });
  button.disabled = false;
  if (reply?.ok) return location.reload();
  const problem = document.createElement("p");
  problem.className = "problem";
  problem.setAttribute("role", "alert");
  problem.textContent = await why(reply);
  place.append(problem);
}

const withScheme = (address) => (address.includes("//") ? address : `https://${address}`);

const form = document.getElementById("remote-model");
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const { service, url, model, key } = form.elements;
  const name = service.value === "openai" ? `openai:${model.value.trim()}` : `${withScheme(url.value.trim())}#${model.value.trim()}`;
  use(name, key?.value ?? "", form.querySelector("[type=submit]"), form);
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-model-remove]");
  if (!button) return;
  const reply = await post("/api/setup/models/remove", { name: button.dataset.modelRemove, key: "hasKey" in button.dataset });
  if (reply?.ok) location.reload();
  else show(await why(reply));
});

/** Show the servers of models that run on this machine. */
async function showServers(place) {
  const reply = await fetch("/api/setup").catch(() => null);
  if (!reply?.ok) return (place.textContent = await why(reply));
  const { servers, models } = await reply.json();
  const chosen = new Set(models.map((model) => model.name));
  place.replaceChildren();
  for (const server of servers) {
    const line = document.createElement("p");
    line.className = "row";
    const called = document.createElement("b");
    called.textContent = gettext("%(name)s is running", { name: server.title });
    line.append(called);
    const free = server.models.filter((name) => !chosen.has(name));
    if (free.length) {
      const list = document.createElement("select");
      list.setAttribute("aria-label", gettext("Model of %(name)s", { name: server.title }));
      list.append(...free.map((name) => new Option(name.split("#").pop().replace(/^ollama:/, ""), name)));
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className: "primary", textContent: gettext("Use it") });
      button.addEventListener("click", () => use(list.value, "", button, place));
      line.append(list, button);
    } else {
      line.append(server.models.length ? gettext("and its models are chosen.") : gettext("and has no model yet."));
    }
    const goes = document.createElement("span");
    goes.className = "muted small";
    goes.textContent = gettext("stays on this computer (%(address)s)", { address: server.url });
    line.append(goes);
    place.append(line);
  }
  if (!servers.length) {
    const none = document.createElement("p");
    none.className = "muted";
    none.textContent = `${gettext("Neither Ollama, LM Studio nor llama.cpp runs on this computer at the moment. Start one of them, and it is offered here.")} `;
    const again = document.createElement("button");
    Object.assign(again, { type: "button", textContent: gettext("Look again") });
    again.addEventListener("click", () => showServers(place));
    none.append(again);
    place.append(none);
  }
}

const place = document.getElementById("local-models");
if (place) showServers(place);
