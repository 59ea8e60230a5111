// Documents and graphs of a base: dropped in or chosen, sent with their progress, followed until they can be asked.

import { morph } from "./morph.js";
import { gettext } from "./words.js";

/** Milliseconds between two looks at a page that changes quickly. */
const PAUSE = 300;
/** Files that are sent at a time. */
const AT_ONCE = 3;

const loadSources = () => import("./sources.js");

function addShelf(home) {
  const drop = document.getElementById("drop");
  const refresh = refresher(home);
  home.addEventListener("changed", refresh);
  home.addEventListener("click", (event) => {
    if (!event.target.closest("[data-list-all]")) return;
    const address = new URL(location.href);
    address.searchParams.set("every", "true");
    history.replaceState(null, "", address);
    refresh();
  });
  if (!drop) return;
  const sending = sender(document.getElementById("sending"), refresh);
  for (const [id, address] of [["files", drop.getAttribute("action")], ["graph-files", drop.dataset.graphs]]) {
    const field = document.getElementById(id);
    field.addEventListener("change", () => {
      sending([...field.files], address);
      field.value = "";
    });
  }
  addDropping(drop, (list) => sending(list, drop.getAttribute("action")));
  drop.addEventListener("submit", (event) => event.preventDefault());

  follow(drop.dataset.events, refresh);
}

/** Return what brings the page in line with the project, soon and not too often: there is one rendering, the server's,
 * whether the page is loaded or stays open. */
function refresher(home) {
  let isBusy = false;
  let isStale = false;
  async function refresh() {
    isStale = true;
    if (isBusy) return;
    isBusy = true;
    while (isStale) {
      await new Promise((go) => setTimeout(go, PAUSE));
      isStale = false;
      await load();
    }
    isBusy = false;
  }
  async function load() {
    // The page of a form that was refused has an address of its own.
    const address = location.pathname === home.dataset.page ? location.href : home.dataset.page;
    const reply = await fetch(address).catch(() => null);
    const html = reply?.ok ? await reply.text().catch(() => "") : "";
    const page = new DOMParser().parseFromString(html, "text/html").getElementById("main");
    if (!page) return;
    morph(document.getElementById("main"), page);
    home.dispatchEvent(new CustomEvent("listed", { bubbles: true }));
  }
  return refresh;
}

/** Follow what becomes of uploads while the page is seen: a browser has six connections for all its tabs together. */
function follow(address, refresh) {
  let events = null;
  const open = () => {
    if (events) return;
    events = new EventSource(address);
    for (const change of ["upload", "encoding", "pages", "source", "forgotten"]) events.addEventListener(change, refresh);
    // What happened before it was open was missed.
    events.addEventListener("open", refresh);
  };
  const close = () => {
    events?.close();
    events = null;
  };
  if (!document.hidden) open();
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
}

/** Take files that are dropped anywhere on the page. */
function addDropping(drop, take) {
  const holds = (event) => [...(event.dataTransfer?.types || [])].includes("Files");
  addEventListener("dragover", (event) => {
    if (!holds(event)) return;
    event.preventDefault();
    drop.classList.add("over");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) drop.classList.remove("over");
  });
  addEventListener("drop", (event) => {
    if (!holds(event)) return;
    event.preventDefault();
    drop.classList.remove("over");
    take([...event.dataTransfer.files]);
  });
}

/** Return what sends files one by one, each with a line that shows how far it is or why it was refused; ``done`` is
 * called when all are sent of which some were taken on. */
function sender(list, done) {
  const waiting = [];
  let busy = 0;
  let some = false;

  function next() {
    while (busy < AT_ONCE && waiting.length) {
      busy += 1;
      send(...waiting.shift()).then((taken) => {
        busy -= 1;
        some ||= taken;
        if (some && !waiting.length && !busy) {
          some = false;
          done();
        }
        next();
      });
    }
  }

  return (files, address) => {
    // Who waits for a small file should not wait for large ones.
    for (const file of files.sort((a, b) => a.size - b.size)) waiting.push([file, address, lineOf(list, file.name)]);
    next();
  };
}

function lineOf(list, name) {
  const line = document.createElement("li");
  line.className = "upload";
  const called = document.createElement("span");
  called.className = "name";
  called.textContent = name;
  const state = document.createElement("span");
  state.className = "state small";
  state.textContent = gettext("waiting");
  const bar = document.createElement("progress");
  bar.max = 1;
  bar.value = 0;
  bar.setAttribute("aria-label", gettext("Sending %(name)s", { name }));
  line.append(called, state, bar);
  list.append(line);
  return line;
}

/** Send one file; whether it was taken on. What the server is too busy for is sent again when it says. */
function send(file, address, line) {
  const state = line.querySelector(".state");
  const bar = line.querySelector("progress");
  state.textContent = gettext("being sent");
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    const body = new FormData();
    body.append("files", file, file.name);
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) bar.value = event.loaded / event.total;
    });
    request.addEventListener("load", () => {
      const told = readable(request.responseText);
      if (request.status === 429 || request.status === 503) {
        const seconds = Number(request.getResponseHeader("Retry-After")) || 10;
        state.textContent = gettext("the server is busy; again in %(seconds)s s", { seconds });
        setTimeout(() => send(file, address, line).then(done), 1000 * seconds);
        return;
      }
      const refused = request.status >= 400 ? told : told.refused?.[0];
      if (refused) fail(line, refused.error || gettext("the server replied %(status)s", { status: `${request.status}` }), refused.hint);
      else line.remove();
      done(!refused);
    });
    request.addEventListener("error", () => {
      fail(line, gettext("it could not be sent: the server could not be reached, or the file is too large"));
      done(false);
    });
    request.open("POST", address);
    request.send(body);
  });
}

function readable(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function fail(line, error, hint) {
  line.classList.add("failed");
  line.querySelector("progress")?.remove();
  line.querySelector(".state").textContent = gettext("not added");
  const why = document.createElement("p");
  why.className = "why small";
  why.setAttribute("role", "alert");
  why.textContent = [error, hint].filter(Boolean).map((text) => `${gettext(text)}.`).join(" ");
  const away = document.createElement("button");
  away.type = "button";
  away.className = "quiet";
  away.textContent = "✕";
  away.setAttribute("aria-label", gettext("Dismiss: %(name)s", { name: line.querySelector(".name").textContent }));
  away.addEventListener("click", () => line.remove());
  line.append(away, why);
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-source-kind]")) return;
  event.preventDefault();
  loadSources().then(({ addSource }) => addSource(event.target));
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-source-change]");
  if (button) loadSources().then(({ changeSource }) => changeSource(button));
});
document.addEventListener("focusin", (event) => offer(event.target));
document.addEventListener("input", (event) => offer(event.target));

function offer(field) {
  if (field.matches?.("[data-folders] [name=place]")) loadSources().then(({ offerFolders }) => offerFolders(field));
}

addShelf(document.querySelector(".home"));
