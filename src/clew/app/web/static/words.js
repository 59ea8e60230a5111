// The messages of the scripts, in the language of the page; the English texts are the keys.

const { form, words } = globalThis.clewWords ?? {};
/** The language in which numbers are written: with the digits 0 to 9 in each. */
const digits = `${document.documentElement.lang}-u-nu-latn`;

function fill(text, values) {
  return text.replace(/%\((\w+)\)s/g, (_, name) => {
    const value = values[name];
    return typeof value === "number" ? value.toLocaleString(digits) : value;
  });
}

/** Return a message with ``values`` put into it. */
export function gettext(text, values = {}) {
  return fill(words?.[text] ?? text, values);
}

/** Return a message in the form that a number asks for, which stands in it as ``%(num)s``. */
export function ngettext(singular, plural, num, values = {}) {
  const text = words?.[singular]?.[form(num)] ?? (num === 1 ? singular : plural);
  return fill(text, { num, ...values });
}
