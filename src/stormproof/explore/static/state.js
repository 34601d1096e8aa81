// What is looked at. The state is the part of the address after #, so every look is a link.
const START = {
  subject: "0", measure: "", scale: "", cell: "", at: "", image: "", score: "0.3", class: "", mode: "beside", wipe: "50",
  shows: "", slice: "", error: "", fate: "", truth: "1", found: "1",
};
const heard = [];
export const state = { ...START };

const written = () => new URLSearchParams(Object.entries(state).filter(([key, value]) => value !== START[key])).toString();
const told = (changed) => Promise.all(heard.map((listener) => listener(changed)));

export const change = (changes) => {
  const changed = Object.keys(changes).filter((key) => state[key] !== String(changes[key]));
  if (!changed.length) return undefined;
  changed.forEach((key) => { state[key] = String(changes[key]); });
  const hash = written();
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname);
  return told(new Set(changed)); // until everyone has shown it
};
export const onChange = (listener) => heard.push(listener);
export const reset = (first) => change({ ...START, ...first });
export const link = () => location.href;

const read = () => {
  const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  Object.keys(START).forEach((key) => { state[key] = given[key] ?? START[key]; });
};
addEventListener("hashchange", () => { read(); told(new Set(Object.keys(START))); });
read();
