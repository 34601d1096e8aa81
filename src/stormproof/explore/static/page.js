// Small things that every part of the page uses. Names of users are only ever set as text, never as markup.
export const $ = (selector, from = document) => from.querySelector(selector);
export const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
export const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};
export const options = (select, values, chosen) => { // a value may name its group
  select.replaceChildren(...values.filter(([, , group]) => !group).map(([value, text]) => new Option(text, value)));
  [...new Set(values.map(([, , group]) => group).filter(Boolean))].forEach((label) => select.append(
    make("optgroup", { label }, ...values.filter(([, , group]) => group === label).map(([value, text]) => new Option(text, value)))));
  if (chosen !== undefined) select.value = chosen;
};
export const percent = (share) => `${(100 * share).toFixed(0)} %`;
export const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
export const say = (words) => { $("#said").textContent = words; };
export const trouble = (words) => { const place = $("#trouble"); place.textContent = words; place.hidden = !words; };
export const save = (name, blob) => {
  const url = URL.createObjectURL(blob);
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
};
export const copy = async (text, words) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // a frame or an old browser: through a selection
    const field = make("textarea", { class: "skip" });
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  say(`${words} copied`);
};

// --- questions to the server -------------------------------------------------------------------------
export const address = (question, parameters = {}) => {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
  return `ask/${question}?${new URLSearchParams(given)}`;
};
export const asked = async (question, parameters, signal) => {
  const response = await fetch(address(question, parameters), { signal });
  if (response.status === 204) throw new DOMException("A newer question was asked.", "AbortError");
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }));
  throw new Error(error);
};
export const ask = async (question, parameters, signal) => (await asked(question, parameters, signal)).json();
export const isOld = (error) => error.name === "AbortError";

// Of several questions of one kind only the newest counts: the one before is dropped, here and at the server.
export const newest = (work) => {
  let before;
  return async (...given) => {
    before?.abort();
    const mine = (before = new AbortController());
    try {
      return await work(mine.signal, ...given);
    } catch (error) {
      if (!isOld(error)) { trouble(error.message); throw error; }
      return undefined;
    }
  };
};
