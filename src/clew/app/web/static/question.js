// A question that is being answered: its trail as it happens, a button that stops it, and the answer at its end.

import { gettext, ngettext } from "./words.js";

/** Bring the marked cells of wide tables below an element into view. */
export function showMarkedCells(root) {
  for (const table of root.querySelectorAll(".scroll")) {
    const cell = table.querySelector("mark.exact");
    if (!cell || table.scrollWidth <= table.clientWidth) continue;
    const { left, width } = cell.getBoundingClientRect();
    table.scrollLeft += left + width / 2 - table.getBoundingClientRect().left - table.clientWidth / 2;
  }
}

/** Milliseconds before a server that cannot be reached is asked again. */
const RETRY = 2000;

/** Follow the question of an article until it has ended. */
export function follow(article) {
  const live = article.querySelector(".live");
  if (!live) return;
  const state = live.querySelector(".state");
  const trail = live.querySelector(".trail");
  const stop = live.querySelector(".stop");
  const events = new EventSource(`${article.dataset.page}/events`);
  let ended = false;

  async function end() {
    if (ended) return;
    ended = true;
    events.close();
    const reply = await fetch(`${article.dataset.page}/answer`).catch(() => null);
    // What became of a question that is not there, or not to be seen, its own page says.
    if (reply && !reply.ok) return location.reload();
    const html = (await reply?.text().catch(() => ""))?.trim();
    if (!html) {
      // The server is being started again, or the question is still being answered.
      state.textContent = gettext("The connection broke off; trying again");
      ended = false;
      setTimeout(end, RETRY);
      return;
    }
    const result = article.querySelector(".result");
    const focused = live.contains(document.activeElement);
    // HTML of our own server, in which every text is escaped.
    result.innerHTML = html;
    live.remove();
    const heading = result.querySelector(".answer-heading, .problem h2");
    document.getElementById("told").textContent = heading ? gettext("%(heading)s below.", { heading: heading.textContent.trim() }) : gettext("Done.");
    if (focused && heading) {
      heading.tabIndex = -1;
      heading.focus();
    }
    article.dataset.state = "done";
    document.getElementById("history")?.dispatchEvent(new CustomEvent("changed"));
    showMarkedCells(result);
  }

  events.addEventListener("waiting", (event) => {
    const { ahead } = JSON.parse(event.data);
    state.textContent = ahead
      ? ngettext("Waiting for its turn, after %(num)s other", "Waiting for its turn, after %(num)s others", ahead)
      : gettext("Waiting for its turn");
  });
  events.addEventListener("running", () => (state.textContent = gettext("Following the thread")));
  events.addEventListener("step", (event) => {
    const made = document.createElement("template");
    made.innerHTML = JSON.parse(event.data).html;
    trail.append(made.content);
  });
  events.addEventListener("answer", end);
  events.addEventListener("problem", end);
  // The browser comes back by itself, unless the server has nothing more to say: then the question has ended.
  events.addEventListener("error", () => {
    if (events.readyState === EventSource.CLOSED) end();
    else state.textContent = gettext("The connection broke off; trying again");
  });
  stop.addEventListener("click", async () => {
    stop.disabled = true;
    state.textContent = gettext("Stopping after this step");
    const reply = await fetch(`${article.dataset.api}/stop`, { method: "POST" }).catch(() => null);
    if (reply?.status === 404) end(); // it has ended, or the server has
    else if (!reply?.ok) {
      stop.disabled = false;
      state.textContent = gettext("The server could not be reached.");
    }
  });
}
