// The walk: pointing at a node, or moving to it with the arrow keys, shows its words, its score and how it was reached.

/** Make the walks below an element work. */
export function addWalks(root) {
  for (const walk of root.querySelectorAll(".walk")) addWalk(walk);
}

function addWalk(walk) {
  const places = [...walk.querySelectorAll(".place")];
  const ways = [...walk.querySelectorAll(".way")];
  const notes = new Map([...walk.querySelectorAll(".walk-note")].map((one) => [one.dataset.for, one]));
  const hint = walk.querySelector(".walk-hint");

  function show(place) {
    for (const one of places) one.classList.toggle("on", one === place);
    for (const one of ways) {
      one.classList.toggle("on", one.dataset.from === place.dataset.id || one.dataset.to === place.dataset.id);
    }
    for (const [id, note] of notes) note.hidden = id !== place.dataset.id;
    hint.hidden = true;
  }

  function move(place) {
    for (const one of places) one.setAttribute("tabindex", one === place ? "0" : "-1");
    place.focus();
  }

  /** Return the nearest node in a direction: within the column, or at the same height in the next one. */
  function towards(place, key) {
    const column = Number(place.dataset.column);
    const row = Number(place.dataset.row);
    const up = { ArrowUp: -1, ArrowDown: 1 }[key];
    if (up) {
      return places.find((one) => Number(one.dataset.column) === column && Number(one.dataset.row) === row + up);
    }
    const side = { ArrowLeft: -1, ArrowRight: 1 }[key];
    const there = places.filter((one) => Number(one.dataset.column) === column + side);
    there.sort((a, b) => Math.abs(a.dataset.row - row) - Math.abs(b.dataset.row - row));
    return there[0];
  }

  for (const place of places) {
    place.addEventListener("pointerenter", () => show(place));
    place.addEventListener("focus", () => show(place));
    place.addEventListener("click", () => {
      move(place);
      if (place.dataset.href) place.dispatchEvent(new CustomEvent("show", { bubbles: true }));
    });
    place.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        if (place.dataset.href) place.dispatchEvent(new CustomEvent("show", { bubbles: true }));
      } else if (event.key.startsWith("Arrow")) {
        event.preventDefault();
        const next = towards(place, event.key);
        if (next) move(next);
      } else if (event.key === "Home" || event.key === "End") {
        event.preventDefault();
        move(event.key === "Home" ? places[0] : places[places.length - 1]);
      }
    });
  }
  // Somebody may be at a node already: this is loaded once the walk is seen.
  const current = walk.querySelector(".place:focus") ?? walk.querySelector(".place:hover");
  if (current) show(current);
}
