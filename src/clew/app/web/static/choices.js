// The methods of a form: those that this base cannot be asked by, with the chosen model, say why and cannot be chosen.

import { gettext } from "./words.js";

/** Look when somebody is about to choose: what stands against a method is found out by making it ready. */
export function addChoices(form, base) {
  const lists = [...form.querySelectorAll("select[name=recipe], select[name=also]")];
  const model = form.querySelector("select[name=model]");
  const words = new Map(lists.flatMap((list) => [...list.options]).map((one) => [one, one.textContent]));
  let known = null;

  async function look() {
    const chosen = model ? model.value : "";
    if (known === chosen) return;
    known = chosen;
    const address = `/api/bases/${encodeURIComponent(base)}/recipes${chosen ? `?model=${encodeURIComponent(chosen)}` : ""}`;
    const reply = await fetch(address).catch(() => null);
    if (!reply || !reply.ok || known !== chosen) return;
    const problems = new Map((await reply.json()).recipes.map((one) => [one.name, one.problem]));
    for (const [option, text] of words) {
      const problem = problems.get(option.value);
      option.disabled = Boolean(problem) && !option.selected;
      option.textContent = problem ? gettext("%(method)s: not now, %(reason)s", { method: option.value, reason: gettext(problem.error) }) : text;
    }
  }

  for (const list of lists) {
    list.addEventListener("focus", look);
    list.addEventListener("pointerdown", look);
  }
}
