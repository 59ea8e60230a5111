// Brings a part of the page in line with what the server renders, and touches nothing that stayed the same: fields
// keep what was typed, menus stay open, the focus stays where it was.

/** What the page itself sets, not the server. */
const OWN = new Set(["open", "data-loaded"]);
/** Elements whose contents belong to the page: chosen, typed or loaded there. */
const KEPT = "[data-keep], [data-loaded], textarea, noscript";

const keyOf = (node) => node.id || node.dataset?.key || "";

/** Change a node into another of the same kind. */
export function morph(old, fresh) {
  if (old.nodeName !== fresh.nodeName || keyOf(old) !== keyOf(fresh)) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  const isKept = old.matches(KEPT);
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !OWN.has(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) {
    if (!OWN.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (!isKept) morphChildren(old, fresh);
}

function morphChildren(old, fresh) {
  const wanted = new Set([...fresh.children].map(keyOf));
  const keyed = new Map();
  for (const child of [...old.children]) {
    const key = keyOf(child);
    if (key && !wanted.has(key)) child.remove();
    else if (key) keyed.set(key, child);
  }
  let next = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const key = keyOf(child);
    const same = keyed.get(key);
    if (same) {
      // What stands before it without a key is gone; an element that is moved would lose the focus.
      while (next && next !== same && !keyOf(next)) next = removeNode(next);
      if (next === same) next = same.nextSibling;
      else old.insertBefore(same, next);
      morph(same, child);
    } else if (!key && next && !keyOf(next) && next.nodeName === child.nodeName) {
      const current = next;
      next = next.nextSibling;
      morph(current, child);
    } else old.insertBefore(child, next);
  }
  while (next) next = removeNode(next);
}

/** Remove a node and return the one after it. */
function removeNode(node) {
  const after = node.nextSibling;
  node.remove();
  return after;
}
