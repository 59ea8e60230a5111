// The questions of a base: searched while words are typed, renamed, pinned.

import { gettext } from "./words.js";

/** Milliseconds after the last key before the list is searched. */
const PAUSE = 200;

/** Make the sidebar work; it is loaded again after every change. */
export function addHistory(sidebar) {
  let timer = 0;
  let stale = false;

  /** Whether somebody has a menu of the list open, or writes a name in it: it must not be replaced under their hands. */
  const isInUse = () => sidebar.querySelector(".days details[open], .days input") !== null;

  async function load(words) {
    const reply = await fetch(`${sidebar.dataset.src}?words=${encodeURIComponent(words)}`).catch(() => null);
    if (!reply || !reply.ok) return;
    const made = new DOMParser().parseFromString(await reply.text(), "text/html");
    const days = made.querySelector(".days");
    if (!days) return;
    stale = isInUse();
    if (stale) return;
    for (const link of days.querySelectorAll("a")) {
      if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
    }
    sidebar.querySelector(".days").replaceWith(days);
  }

  const reload = () => load(sidebar.querySelector("[name=words]")?.value || "");
  const loadIfStale = () => stale && !isInUse() && reload();

  sidebar.addEventListener("changed", reload);

  sidebar.addEventListener("input", (event) => {
    if (event.target.name !== "words") return;
    clearTimeout(timer);
    timer = setTimeout(() => load(event.target.value), PAUSE);
  });

  async function change(button, fields) {
    button.closest("details")?.removeAttribute("open");
    const headers = { "Content-Type": "application/json" };
    const body = JSON.stringify(fields);
    const reply = await fetch(button.closest("li").dataset.api, { method: "PATCH", headers, body }).catch(() => null);
    if (reply?.ok) reload();
  }

  /** Replace the link of a line by a field with its title, until Enter, Escape or a press elsewhere. */
  function rename(button) {
    const line = button.closest("li");
    const link = line.querySelector("a");
    const field = document.createElement("input");
    field.value = link.textContent;
    field.setAttribute("aria-label", gettext("New name"));
    button.closest("details").open = false;
    link.replaceWith(field);
    field.focus();
    field.select();
    let ended = false;
    const end = (save) => {
      if (ended) return;
      ended = true;
      field.replaceWith(link);
      link.focus();
      if (save && field.value.trim() !== link.textContent) change(button, { title: field.value.trim() });
      else loadIfStale();
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === "Escape") {
        event.preventDefault();
        end(event.key === "Enter");
      }
    });
    field.addEventListener("blur", () => end(true));
  }

  sidebar.addEventListener("click", (event) => {
    const button = event.target.closest("[data-change]");
    if (!button) return;
    if (button.dataset.pinned) change(button, { pinned: button.dataset.pinned === "true" });
    else rename(button);
  });
  // One menu at a time; Escape closes it.
  sidebar.addEventListener("toggle", (event) => {
    if (!event.target.open) return loadIfStale();
    for (const menu of sidebar.querySelectorAll("details[open]")) if (menu !== event.target) menu.open = false;
  }, true);
  sidebar.addEventListener("keydown", (event) => {
    const menu = event.target.closest("details[open]");
    if (event.key !== "Escape" || !menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}
