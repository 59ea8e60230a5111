// The methods of a form: those that this base cannot be asked by, with the chosen model, say why and cannot be chosen.

import { gettext } from "./words.js";

/** What each list of methods said before, and for which form and model it was looked up. */
const words = new WeakMap();
const looked = new WeakMap();

/** Look when somebody is about to choose: what stands against a method is found out by making it ready. */
export async function showChoices(form) {
  const chosen = form.querySelector("select[name=model]")?.value || "";
  if (looked.get(form) === chosen) return;
  looked.set(form, chosen);
  const address = `/api/bases/${encodeURIComponent(form.dataset.choices)}/recipes${chosen ? `?model=${encodeURIComponent(chosen)}` : ""}`;
  const reply = await fetch(address).catch(() => null);
  if (!reply || !reply.ok || looked.get(form) !== chosen) return;
  const problems = new Map((await reply.json()).recipes.map((method) => [method.name, method.problem]));
  for (const option of form.querySelectorAll("select[name=recipe] option, select[name=also] option")) {
    if (!words.has(option)) words.set(option, option.textContent);
    const problem = problems.get(option.value);
    option.disabled = Boolean(problem) && !option.selected;
    option.textContent = problem ? gettext("%(method)s: not now, %(reason)s", { method: option.value, reason: gettext(problem.error) }) : words.get(option);
  }
}

/** Look again next time: what is in the base has changed. */
document.addEventListener("listed", () => {
  for (const form of document.querySelectorAll("form[data-choices]")) looked.delete(form);
});
