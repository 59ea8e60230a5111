// The panel that shows a citation where it stands: on the picture of its page, or among the text around it.

/** Make links to evidence and to places in a document open in the panel. */
export function addViewer(viewer) {
  const body = viewer.querySelector(".viewer-body");
  let opener = null;
  let asked = 0;

  async function open(link) {
    const mine = ++asked;
    const address = new URL(link.getAttribute("href") || link.dataset.href, location.href);
    address.searchParams.set("part", "1");
    for (const one of document.querySelectorAll("[aria-current=true]")) one.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    opener = link;
    viewer.hidden = false;
    body.setAttribute("aria-busy", "true");
    let html;
    try {
      const reply = await fetch(address);
      // Where there is no part to show, the server explains that on a page of its own: of it what it says.
      html = reply.ok && !reply.redirected ? await reply.text() : said(await reply.text());
    } catch {
      html = '<p class="problem" role="alert">The server could not be reached.</p>';
    }
    if (mine !== asked) return; // another one was asked for meanwhile
    // HTML of our own server, in which every text is escaped.
    body.innerHTML = html;
    body.removeAttribute("aria-busy");
    viewer.scrollTop = 0;
    body.focus({ preventScroll: true });
    bring(body.querySelector(".sheet rect"), body.querySelector("#here"));
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
  document.addEventListener("show", (event) => open(event.target));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !viewer.hidden && !document.querySelector("dialog[open]")) close();
  });
  viewer.querySelector(".close").addEventListener("click", close);
  viewer.querySelector(".previous")?.addEventListener("click", () => step(-1));
  viewer.querySelector(".next")?.addEventListener("click", () => step(1));
}
