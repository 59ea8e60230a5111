// The panel that shows a citation where it stands: on the picture of its page, or among the text around it.

import { gettext } from "./words.js";

/** Classes of a page by how large it is shown. */
const ZOOMS = ["zoom-1", "zoom-2", "zoom-3", "zoom-4"];

/** Make links to evidence and to places in a document open in the panel. */
export function addViewer(viewer) {
  const body = viewer.querySelector(".viewer-body");
  let opener = null;
  let zoom = 1;
  let asked = 0;

  /** Show what a link leads to. A link of the panel itself leaves it open for the one outside that opened it. */
  function open(link) {
    if (!viewer.contains(link)) {
      for (const one of document.querySelectorAll("[aria-current=true]")) one.removeAttribute("aria-current");
      link.setAttribute("aria-current", "true");
      opener = link;
    }
    const turn = link.dataset.turn ? `[data-turn="${link.dataset.turn}"]` : "";
    return show(new URL(link.getAttribute("href") || link.dataset.href, location.href), turn);
  }

  async function show(address, keep = "") {
    const mine = ++asked;
    address.searchParams.set("part", "1");
    viewer.hidden = false;
    body.setAttribute("aria-busy", "true");
    let html;
    try {
      const reply = await fetch(address);
      // Where there is no part to show, the server explains that on a page of its own: of it what it says.
      html = reply.ok && !reply.redirected ? await reply.text() : said(await reply.text());
    } catch {
      html = `<p class="problem" role="alert">${gettext("The server could not be reached.")}</p>`;
    }
    if (mine !== asked) return; // another one was asked for meanwhile
    // HTML of our own server, in which every text is escaped.
    body.innerHTML = html;
    body.removeAttribute("aria-busy");
    viewer.scrollTop = 0;
    zoomTo(zoom);
    // Who turns pages or searches goes on doing so.
    const again = keep && body.querySelector(keep);
    (again || body).focus({ preventScroll: true });
    bring(body.querySelector(".sheet rect.current, .sheet rect"), body.querySelector("#here"));
  }

  /** Show the page larger or smaller, from 1 (the width of the panel) to 4, with a picture that is sharp enough. */
  function zoomTo(wanted) {
    zoom = Math.max(1, Math.min(ZOOMS.length, wanted));
    for (const bar of body.querySelectorAll(".zoom")) bar.hidden = false;
    for (const button of body.querySelectorAll("[data-zoom]")) {
      button.setAttribute("aria-disabled", String(!ZOOMS[zoom - 1 + Number(button.dataset.zoom)]));
    }
    for (const sheet of body.querySelectorAll(".sheet")) {
      sheet.classList.remove(...ZOOMS);
      sheet.classList.add(ZOOMS[zoom - 1]);
      const picture = sheet.querySelector("img");
      const address = new URL(picture.src);
      if (zoom > 1) address.searchParams.set("scale", zoom > 2 ? "3" : "2");
      if (address.href !== picture.src) picture.src = address.href;
    }
  }

  /** Return the contents of a whole page of our server. */
  function said(page) {
    return new DOMParser().parseFromString(page, "text/html").querySelector("main")?.innerHTML ?? "";
  }

  /** Bring what is highlighted into view, within the panel. */
  function bring(box, text) {
    const target = box || text;
    if (!target) return;
    const place = target.getBoundingClientRect();
    const bottom = viewer.getBoundingClientRect().bottom;
    // Where all of it, or a good part of something large, is in view already, nothing moves.
    if (place.bottom < bottom || (place.height > viewer.clientHeight / 2 && place.top < bottom - 200)) return;
    viewer.scrollTop += place.top - viewer.getBoundingClientRect().top - viewer.clientHeight / 4;
  }

  function close() {
    viewer.hidden = true;
    asked += 1;
    if (opener) {
      opener.removeAttribute("aria-current");
      opener.focus();
    }
  }

  function step(by) {
    const entry = opener?.closest(".entry");
    const links = [...(entry?.querySelectorAll(".citations .open") || [])];
    if (!links.length) return;
    const at = links.findIndex((one) => one.dataset.cite === opener.dataset.cite);
    open(links[(at + by + links.length) % links.length]);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-cite], a[data-source]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    open(link);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-source-form]");
    if (!form) return;
    event.preventDefault();
    const address = new URL(form.action);
    for (const [name, value] of new FormData(form)) address.searchParams.set(name, value);
    if (!viewer.contains(form)) opener = form.querySelector("input");
    show(address, form.matches("[role=search]") ? "" : "input[name=page]");
  });
  viewer.addEventListener("click", (event) => {
    const button = event.target.closest("[data-zoom]");
    if (button) zoomTo(zoom + Number(button.dataset.zoom));
  });
  viewer.addEventListener("keydown", (event) => {
    if (event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey) return;
    const [left, right] = document.dir === "rtl" ? ["1", "-1"] : ["-1", "1"];
    const turn = { ArrowLeft: left, PageUp: "-1", ArrowRight: right, PageDown: "1" }[event.key];
    const larger = { "+": 1, "=": 1, "-": -1 }[event.key];
    const link = turn && body.querySelector(`[data-turn="${turn}"]`);
    if (link) open(link);
    else if (larger) zoomTo(zoom + larger);
    else if (event.key === "/") body.querySelector("[name=words]")?.focus();
    else return;
    event.preventDefault();
  });
  document.addEventListener("show", (event) => open(event.target));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !viewer.hidden && !document.querySelector("dialog[open]")) close();
  });
  viewer.querySelector(".close").addEventListener("click", close);
  viewer.querySelector(".previous")?.addEventListener("click", () => step(-1));
  viewer.querySelector(".next")?.addEventListener("click", () => step(1));
}
