// The breaking point of one image: at which severity each object is lost, drawn as a ladder.
import { $, counted, make, newest, trouble } from "./page.js";
import { onChange, state } from "./state.js";
import * as microscope from "./microscope.js";

const rung = (kind, words) => make("span", { class: `rung ${kind}`, role: "img", "aria-label": words, title: words });
const lostFrom = (row, steps) => { // the first severity from which the object is not found again
  const last = row.lastIndexOf(true);
  if (last === steps.length - 1) return "kept";
  const from = steps[last + 1];
  const gaps = row.slice(0, last + 1).some((met) => !met) ? ", and in between" : "";
  return `lost from ${from.severity}${from.physical[0] ? ` (${from.physical[0]})` : ""}${gaps}`;
};
const show = (table, summary, done) => {
  $("#ladder").replaceChildren(make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Breaking point of this image" }, table), make("p", { class: "note" }, summary));
  $("#ladder").dataset.done = done;
};
const head = (steps, what) => make("thead", {}, make("tr", {}, make("th", { scope: "col" }, what), make("th", { scope: "col" }, "clean"),
  ...steps.map((each) => make("th", { scope: "col" }, String(each.severity))), make("th", { scope: "col" }, "answer")));
const HALF = 0.5; // the share of its clean IoU below which a class is said to break
const drawClasses = (name, steps, looks) => { // of a label map: the IoU of each class, in per cent
  const place = Number(state.subject), { clean } = microscope.seen;
  const iou = (look, key) => look.subjects[place].pixels?.classes[key]?.iou ?? 0;
  const shown = Object.entries(clean.subjects[place].pixels.classes).filter(([key, held]) => held.pixels > 0 && (!state.class || key === state.class));
  const rows = shown.map(([key, held]) => {
    const values = looks.map((look) => iou(look, key)), low = values.map((value) => value < HALF * held.iou);
    const last = low.lastIndexOf(false), from = steps[last + 1];
    return { key, held, values, low, last, words: looks.length < steps.length ? "…" : !held.iou ? "never found" : last === steps.length - 1 ? "kept"
      : `half lost from ${from.severity}${from.physical[0] ? ` (${from.physical[0]})` : ""}` };
  }).sort((a, b) => a.last - b.last);
  const cell = (value, gone) => make("td", { class: gone ? "gone" : "" }, (100 * value).toFixed(0));
  const body = make("tbody", {}, ...rows.map((row) => make("tr", {}, make("th", { scope: "row" }, row.key), cell(row.held.iou ?? 0, false),
    ...steps.map((_, k) => (k < row.values.length ? cell(row.values[k], row.low[k]) : make("td"))), make("td", {}, row.words))));
  const table = make("table", {}, make("caption", {}, `Where ${clean.image} breaks under ${name}: IoU of each class in %`), head(steps, "class"), body);
  const broken = rows.filter((row) => row.held.iou && row.last < steps.length - 1).length;
  show(table, looks.length < steps.length ? `Asking: ${looks.length} of ${steps.length} severities.`
    : `${counted(broken, "class").replace("classs", "classes")} of ${rows.length} ${broken === 1 ? "has" : "have"} less than half of the clean IoU left at severity ${steps.at(-1).severity}.`, `${looks.length}/${steps.length}`);
};
const draw = (name, steps, looks) => {
  const place = Number(state.subject);
  const clean = microscope.seen.clean;
  if (clean.subjects[place].pixels && !clean.subjects[place].judged) { drawClasses(name, steps, looks); return; }
  const objects = clean.truth.filter((thing) => thing.counted && thing.id in clean.subjects[place].objects && (!state.class || thing.name === state.class));
  const done = steps.slice(0, looks.length);
  const table = make("table", {}, make("caption", {}, `Where ${clean.image} breaks under ${name}, scores from ${Number(state.score).toFixed(2)}`),
    head(steps, "object"));
  const body = make("tbody");
  const rows = objects.map((thing) => {
    const first = microscope.foundAt(clean.subjects[place], thing);
    const met = looks.map((look) => microscope.foundAt(look.subjects[place], thing));
    return { thing, first, met };
  });
  const life = (row) => (row.first ? 100 : 0) + row.met.lastIndexOf(true);
  rows.sort((a, b) => life(a) - life(b));
  rows.forEach(({ thing, first, met }) => {
    const words = !first && !met.includes(true) ? "never found" : done.length < steps.length ? "…" : lostFrom(met, steps);
    body.append(make("tr", {}, make("th", { scope: "row" }, microscope.numbered(thing)), make("td", {}, rung(first ? "" : "weak", first ? "found" : "missed")),
      ...steps.map((each, k) => make("td", {}, ...(k < met.length ? [rung(met[k] ? "" : first ? "gone" : "weak", `${each.severity}: ${met[k] ? "found" : "not found"}`)] : []))),
      make("td", {}, words)));
  });
  table.append(body);
  const whole = rows.filter(({ first }) => first);
  const left = whole.filter(({ met }) => met.at(-1)).length;
  const summary = done.length < steps.length ? `Asking: ${looks.length} of ${steps.length} severities.`
    : `${counted(whole.length, "object")} found clean, ${left} left at severity ${steps.at(-1).severity}.`;
  show(table, summary, `${looks.length}/${steps.length}`);
};
export const climb = newest(async (signal) => {
  const steps = microscope.ladderSteps();
  if (!steps.length || !microscope.seen.clean) { trouble("Choose a corruption that has severities first."); return; }
  const name = microscope.stormName(steps[0].condition), looks = [];
  draw(name, steps, looks);
  microscope.draw(); // objects get their numbers
  for (const each of steps) {
    looks.push(await microscope.lookAt(each.condition, signal));
    draw(name, steps, looks);
  }
});
export const start = () => {
  $("#break").addEventListener("click", climb);
  onChange((changed) => { if (changed.has("image") || changed.has("subject")) { $("#ladder").replaceChildren(); delete $("#ladder").dataset.done; } });
};
