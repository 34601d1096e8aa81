// One image: clean and corrupted, truth and predictions, under a severity that moves.
import { $, $$, address, ask, asked, isOld, make, newest, options, trouble } from "./page.js";
import { change, onChange, state } from "./state.js";
import * as list from "./list.js";

const { outline } = stormproof.drawing;
const PAGE = crypto.randomUUID?.() ?? String(Math.random()).slice(2);
let session, steps = [], turn = 0, tallies = new Map();
export const seen = { now: undefined, clean: undefined }; // the last looks
const pictures = { now: undefined, clean: undefined }; // their pixels

// The parts of a composed condition: split at +, but not inside brackets or quotes.
const partsOf = (condition) => condition.match(/(?:"(?:\\.|[^"\\])*"|\[(?:"(?:\\.|[^"\\])*"|[^\]"])*\]|[^+])+/gs) ?? [];
export const corruptionOf = (condition) => condition.split(/[@[]/)[0];
export const stormName = (condition) => partsOf(condition.replace(/^(\w+)@[\d.]+/, "$1")).join(", then ");
export const threshold = () => Number(state.score);
const wanted = (thing) => !state.class || thing.name === state.class;
const isWrong = (thing) => thing.verdict !== "right" && thing.verdict !== "excused";
export const foundAt = (answer, thing) => (answer.objects[thing.id] ?? -1) >= Math.max(threshold(), 1e-9);
const isNew = (thing) => isWrong(thing) && thing.verdict !== "doubled" && thing.was < Math.max(threshold(), 1e-9);
const sure = (answer) => answer.found.filter((thing) => thing.score >= threshold() && wanted(thing));

// --- what is drawn over an image ------------------------------------------------------------------------
const scaled = (thing, ratio) => ({ ...thing, box: thing.box.map((value) => value * ratio),
  ...(thing.outline ? { outline: thing.outline.replace(/[\d.]+/g, (digits) => (Number(digits) * ratio).toFixed(1)) } : {}) });
// The number of an object in the ladder and, while that is shown, in the picture.
export const numbered = ({ id, name }) => `${name} ${seen.clean.truth.filter((thing) => thing.counted).findIndex((thing) => thing.id === id) + 1}`;
const ROOM = 44; // pixels of a box that a label of a right prediction needs; those of wrong ones are always there
const LETTER = 6.2, LINE = 12; // pixels of a letter of a label, at most, and of its height
const drawnObjects = (look, answer, before, ratio) => {
  const drawn = [];
  const isClean = look.condition === "clean", isLadder = $("#ladder").childElementCount > 0;
  if (state.truth === "1" && (answer.judged || answer.source === "none")) {
    look.truth.filter((thing) => thing.counted && wanted(thing)).forEach((thing) => {
      const now = foundAt(answer, thing), then = before && foundAt(before, thing);
      const fate = answer.source === "none" ? "truth" : now ? "kept" : !isClean && then ? "lost" : "missed";
      drawn.push([thing, fate, isLadder ? numbered(thing) : fate === "lost" ? thing.name : ""]);
    });
  }
  if (state.found === "1") {
    sure(answer).forEach((thing) => {
      const label = `${thing.name} ${thing.score.toFixed(2)}`, wide = !isLadder && (thing.box[2] - thing.box[0]) * ratio >= ROOM;
      drawn.push([thing, !isClean && isNew(thing) ? "new" : "found", isWrong(thing) ? `${label} ${thing.verdict}` : wide ? label : ""]);
    });
  }
  return drawn;
};
const settle = (words, long, width, height, taken) => { // where it covers no other label; one that fits nowhere is left out
  const isLate = Number(words.getAttribute("x")) + long > width; // it ends at the edge instead of beyond
  const from = isLate ? width - 3 - long : Number(words.getAttribute("x")), first = Number(words.getAttribute("y"));
  const at = [0, LINE, -LINE, 2 * LINE, -2 * LINE].map((by) => first + by).find((y) => y >= LINE - 2 && y < height
    && !taken.some(([left, right, other]) => from < right && from + long > left && Math.abs(y - other) < LINE));
  if (at === undefined) { words.remove(); return; }
  taken.push([from, from + long, at]);
  words.setAttribute("y", at);
  if (isLate) { words.setAttribute("x", width - 3); words.setAttribute("text-anchor", "end"); }
};
export const overlay = (look, place, width) => {
  const ratio = width / look.width, taken = [], labels = [];
  const svg = stormproof.drawing.shape("svg", { viewBox: `0 0 ${width} ${look.height * ratio}`, "aria-hidden": "true" });
  drawnObjects(look, look.subjects[place], seen.clean?.subjects[place], ratio).forEach(([thing, kind, label]) => {
    const group = outline(scaled(thing, ratio), kind, label);
    const words = group.querySelector("text");
    if (words) settle(words, LETTER * label.length, width, look.height * ratio, taken);
    labels.push(...group.querySelectorAll("text"));
    group.setAttribute("data-kind", kind);
    group.setAttribute("data-name", thing.name);
    if (thing.score !== undefined) group.setAttribute("data-score", thing.score);
    svg.append(group);
  });
  svg.append(...labels); // above every line
  return svg;
};
const painting = (look, place) => {
  if (state.found !== "1" || !look.subjects[place].map) return [];
  return [make("img", { class: "painted", alt: "", src: address("painting", { subject: place, image: look.index, condition: look.condition }) })];
};
const layer = (look, url, place, width, words) => [
  make("img", { src: url, width: look.width, height: look.height, alt: words }), ...painting(look, place), overlay(look, place, width)];
const view = (look, url, place, width) => make("div", { class: "view", "data-condition": look.condition },
  ...layer(look, url, place, width, `${look.image}, ${look.words}`), make("span", { class: "tag" }, look.words));
const wiped = (place, width) => {
  const over = make("div", { class: "over" }, ...layer(seen.now, pictures.now, place, width, `${seen.now.image}, ${seen.now.words}`));
  const edge = make("div", { class: "edge" });
  over.style.clipPath = `inset(0 0 0 ${state.wipe}%)`;
  edge.style.left = `${state.wipe}%`;
  return make("div", { class: "view wiped" }, ...layer(seen.clean, pictures.clean, place, width, `${seen.clean.image}, clean`), over, edge,
    make("span", { class: "tag" }, "clean"), make("span", { class: "tag right" }, seen.now.words));
};
export const draw = () => {
  if (!seen.now || !seen.clean) return;
  const isClean = seen.now.condition === "clean", several = session.subjects.length > 1;
  const room = $("#pictures").clientWidth;
  const one = isClean || state.mode === "wipe";
  const half = innerWidth >= 640 && (!one || several);
  const width = half ? (room - 8) / 2 : room;
  $("#pictures").classList.toggle("pairs", one && half);
  $("#pictures").replaceChildren(...session.subjects.map((subject, place) => {
    const body = isClean ? view(seen.clean, pictures.clean, place, width) : state.mode === "wipe" ? wiped(place, width)
      : make("div", { class: "two" }, view(seen.clean, pictures.clean, place, width), view(seen.now, pictures.now, place, width));
    return make("div", { class: "of", "data-subject": place }, ...(several ? [make("h3", {}, subject.name)] : []), body);
  }));
  $("#wipe-label").hidden = isClean || state.mode !== "wipe";
  count();
};
// --- counts of the image and of the whole cell -----------------------------------------------------------
const ofImage = (look, place) => {
  const answer = look.subjects[place];
  const found = sure(answer), objects = look.truth.filter((thing) => thing.counted && wanted(thing) && thing.id in answer.objects);
  const before = seen.clean?.subjects[place];
  const isLost = (thing) => before && foundAt(before, thing) && !foundAt(answer, thing);
  return { objects: objects.length, right: found.filter((thing) => thing.verdict === "right").length, wrong: found.filter(isWrong).length,
    lost: look.condition === "clean" ? "" : objects.filter(isLost).length, new: look.condition === "clean" ? "" : found.filter(isNew).length };
};
const ofCell = (tally, name = state.class) => {
  const held = tally?.every && (name ? tally.by_class[name] : tally.every);
  if (!held) return undefined;
  const at = Math.round(100 * threshold());
  return { objects: held.objects, right: held.right[at], wrong: held.wrong[at] };
};
const whole = (number) => number.toLocaleString("en-GB");
const share = (part, all) => (all ? `${((100 * part) / all).toFixed(1)} %` : "");
const under = () => (seen.now.condition === "clean" ? "" : ", corrupted");
const ofMap = (pixels) => (state.class ? pixels.classes[state.class] ?? { pixels: 0, wrong: 0, iou: null } : pixels);
const countPixels = () => { // label maps: wrong pixels and IoU, of the image and of the whole cell
  const rows = [];
  session.subjects.forEach((subject, place) => {
    const who = session.subjects.length > 1 ? `${subject.name}, ` : "";
    const line = (name, held) => make("tr", {}, make("th", { scope: "row" }, name), ...[whole(held.pixels), whole(held.wrong),
      state.class ? "" : share(held.wrong, held.pixels), percentOf(held.iou)].map((value) => make("td", {}, value)));
    const tally = tallies.get(`${place} ${seen.now.condition}`);
    const { pixels } = seen.now.subjects[place], before = seen.clean?.subjects[place].pixels;
    if (before && seen.now.condition !== "clean") rows.push(line(`${who}this image, clean`, ofMap(before)));
    if (pixels) rows.push(line(`${who}this image${under()}`, ofMap(pixels)));
    if (tally?.pixels) rows.push(line(`${who}all ${tally.images} images${under()}`, ofMap(tally.pixels)));
  });
  const head = ["counted in", state.class ? `pixels of ${state.class}` : "pixels", state.class ? "missed or wrongly called so" : "wrong pixels", state.class ? "" : "share wrong", state.class ? "IoU" : "mean IoU"];
  if (rows.length) $("#counts thead").replaceChildren(make("tr", {}, ...head.map((words) => make("th", { scope: "col" }, words))));
  return rows;
};
const percentOf = (value) => (value === null || value === undefined ? "" : `${(100 * value).toFixed(1)} %`);
const swatch = (name) => { const box = make("span", { class: "swatch", "aria-hidden": "true" }); box.style.background = session.colours[name] ?? "none"; return box; };
export const shownClasses = (answer) => Object.entries(answer.pixels.classes).filter(([, held]) => held.pixels > 0)
  .map(([name]) => [name, session.colours[name] ?? "#888"]);
const showFoundByClass = (box, place, tally) => { // objects of every class that the whole cell shows, the largest loss first
  const who = session.subjects.length > 1 ? `${session.subjects[place].name}, ` : "";
  $("caption", box).textContent = `${who}classes in all ${tally.images} images, scores from ${threshold().toFixed(2)}, the largest loss first`;
  const head = ["class", "objects", "found clean", "found corrupted", "false positives clean", "false positives corrupted"];
  const rows = Object.keys(tally.by_class).map((name) => ({ name, then: ofCell(tally.clean, name), now: ofCell(tally, name) }))
    .map((row) => ({ ...row, lost: row.now.objects ? (row.then.right - row.now.right) / row.now.objects : 0 }))
    .filter(({ now, then }) => now.objects || now.wrong || then.wrong).sort((a, b) => b.lost - a.lost);
  $("thead", box).replaceChildren(make("tr", {}, ...head.map((words) => make("th", { scope: "col" }, words))));
  $("tbody", box).replaceChildren(...rows.map(({ name, then, now }) => make("tr", { "data-class": name }, make("th", { scope: "row" }, name),
    ...[now.objects, share(then.right, then.objects), share(now.right, now.objects), then.wrong, now.wrong].map((value) => make("td", {}, String(value))))));
};
const showClasses = () => { // IoU of every class that the image shows, the largest loss first
  const place = Number(state.subject), answer = seen.now.subjects[place];
  const box = $("#by-class");
  const tally = tallies.get(`${place} ${seen.now.condition}`);
  box.hidden = !answer?.pixels && !tally?.clean;
  if (tally?.clean) { showFoundByClass(box, place, tally); return; }
  if (!answer?.pixels) return;
  $("caption", box).textContent = "Classes of this image, the largest loss first";
  const isClean = seen.now.condition === "clean";
  const before = seen.clean?.subjects[place].pixels?.classes ?? {}, cell = tallies.get(`${place} ${seen.now.condition}`)?.pixels?.classes ?? {};
  const rows = Object.entries(answer.pixels.classes).filter(([, held]) => held.pixels > 0)
    .map(([name, held]) => ({ name, held, lost: (before[name]?.iou ?? 0) - (held.iou ?? 0) })).sort((a, b) => b.lost - a.lost);
  const head = ["class", "share of pixels", ...(isClean ? [] : ["IoU clean"]), isClean ? "IoU" : "IoU corrupted", "IoU, all images"];
  $("thead", box).replaceChildren(make("tr", {}, ...head.map((words) => make("th", { scope: "col" }, words))));
  $("tbody", box).replaceChildren(...rows.map(({ name, held }) => make("tr", { "data-class": name }, make("th", { scope: "row" }, swatch(name), ` ${name}`),
    ...[share(held.pixels, answer.pixels.pixels), ...(isClean ? [] : [percentOf(before[name]?.iou)]), percentOf(held.iou), percentOf(cell[name]?.iou)].map((value) => make("td", {}, value)))));
};
const count = () => {
  const head = ["counted in", "objects", "true positives", "missed", "false positives", "lost", "new"];
  const line = (name, numbers) => make("tr", {}, make("th", { scope: "row" }, name),
    ...[numbers.objects, numbers.right, numbers.objects - numbers.right, numbers.wrong, numbers.lost ?? "", numbers.new ?? ""]
      .map((value) => make("td", {}, String(value))));
  const rows = [];
  session.subjects.forEach((subject, place) => {
    const who = session.subjects.length > 1 ? `${subject.name}, ` : "";
    if (seen.now.subjects[place].judged) rows.push(line(`${who}this image${under()}`, ofImage(seen.now, place)));
    const tally = tallies.get(`${place} ${seen.now.condition}`);
    if (tally?.clean) rows.push(line(`${who}all ${tally.images} images, clean`, ofCell(tally.clean)));
    if (ofCell(tally)) rows.push(line(`${who}all ${tally.images} images${under()}`, ofCell(tally)));
  });
  $("#counts thead").replaceChildren(make("tr", {}, ...head.map((words) => make("th", { scope: "col" }, words))));
  if (!rows.length) rows.push(...countPixels());
  showClasses();
  $("#counts tbody").replaceChildren(...rows);
  $("#counts").closest(".scroll").hidden = !rows.length;
  $("#score-words").textContent = threshold().toFixed(2);
};
const fetchTallies = newest(async (signal, condition) => {
  for (const [place, subject] of session.subjects.entries()) {
    const key = `${place} ${condition}`;
    if (!subject.run || !session.conditions.includes(condition) || tallies.has(key)) continue;
    const tally = await ask("tallies", { subject: place, condition }, signal);
    if (tallies.size > 40) tallies.clear();
    if (tally) tallies.set(key, tally);
  }
  if (seen.now) count();
});

// --- asking ---------------------------------------------------------------------------------------------
const look = async (condition, signal, parameters = {}) => {
  const given = { image: state.image, condition, ...parameters };
  const [seenNow, blob] = await Promise.all([ask("look", given, signal), asked("picture", given, signal).then((answer) => answer.blob())]);
  const url = URL.createObjectURL(blob);
  const image = new Image();
  image.src = url;
  await image.decode();
  return [seenNow, url];
};
const place = (name, [lookNow, url]) => {
  const old = pictures[name];
  [seen[name], pictures[name]] = [lookNow, url];
  if (old && !Object.values(pictures).includes(old)) URL.revokeObjectURL(old);
};
export const show = newest(async (signal) => {
  if (state.image === "") return;
  const began = performance.now();
  const condition = state.at || "clean";
  turn += 1;
  const mine = { page: PAGE, turn };
  $$(".view").forEach((box) => box.classList.add("waiting"));
  if (seen.clean?.index !== Number(state.image)) {
    const clean = await look("clean", signal, mine);
    place("clean", clean);
  }
  if (condition === "clean") place("now", [seen.clean, pictures.clean]);
  else place("now", await look(condition, signal, mine));
  trouble("");
  draw();
  describe();
  await new Promise(requestAnimationFrame);
  performance.measure("picture shown", { start: began, detail: condition });
  document.documentElement.dataset.look = `${seen.now.index} ${seen.now.condition}`;
  fetchTallies(condition);
});
const describe = () => {
  const { now } = seen;
  $("#image-name").textContent = now.image;
  $("#mark").setAttribute("aria-pressed", String(list.marked.has(now.raw)));
  $("#clean").setAttribute("aria-pressed", String(now.condition === "clean"));
  $("#unit").textContent = now.physical.slice(0, 3).join(" · ");
  const answers = now.subjects.map((answer, i) => {
    const who = session.subjects.length > 1 ? `${session.subjects[i].name}: ` : "";
    const error = answer.error === null || answer.error === undefined ? "" : `; error of this image alone ${(100 * answer.error).toFixed(0)} %`;
    if (answer.source === "stored") return `${who || "Shown: "}as the run predicted${error}.`;
    if (answer.source === "live") return `${who || "Shown: "}the model was asked just now${session.subjects[i].run ? ", about this image alone: the run has no such cell. The command Run below makes one of all images" : ""}.`;
    return `${who}No prediction: the run has none here, and the model cannot be asked. ${answer.why}`;
  });
  const carried = now.carried.length && now.subjects.some((answer) => answer.judged) ? ` Right and wrong are judged by upright boxes (IoU 0.5) here, not by ${now.carried.join(" or ")}.` : "";
  $("#source").textContent = answers.join(" ") + carried;
};

// --- corruption, severity and parameters ---------------------------------------------------------------
const parametersOf = () => Object.fromEntries($$("[data-field]").filter((field) => field.value !== "")
  .map((field) => [field.dataset.field, field.tagName === "SELECT" ? field.value : Number(field.value)]));
const written = (name, severity, parameters) => {
  const inside = Object.entries(parameters).map(([key, value]) => `${key}=${value}`).join(",");
  return `${name}${severity === null || severity === undefined ? "" : `@${severity}`}${inside ? `[${inside}]` : ""}`;
};
const current = () => session.corruptions.find((each) => each.name === $("#corruption").value);
const isLive = () => session.subjects.some((subject) => subject.live);
const fillFields = (values = {}) => {
  const chosen = current();
  const fields = chosen && isLive() ? chosen.fields : [];
  $("#fields-box").hidden = !fields.length;
  $("#fields").replaceChildren(...fields.map((field) => {
    const input = field.choices.length ? make("select", { "data-field": field.name })
      : make("input", { type: "number", "data-field": field.name, step: field.whole ? "1" : "any",
        ...(field.low === null ? {} : { min: field.low }), ...(field.high === null ? {} : { max: field.high }) });
    if (field.choices.length) options(input, [["", "as usual"], ...field.choices.map((each) => [each, each])], values[field.name] ?? "");
    else input.value = values[field.name] ?? "";
    return make("label", {}, field.unit ? `${field.name} (${field.unit})` : field.name, input);
  }));
  if (Object.keys(values).length) $("#fields-box").open = true;
};
const showFields = () => { // what a field would be without being set
  const values = seen.now?.parameters ?? {};
  $$("input[data-field]").forEach((field) => {
    const value = values[field.dataset.field];
    field.placeholder = typeof value === "number" ? String(Number(value.toPrecision(4))) : "";
  });
};
const readParameters = (condition) => {
  const inside = (partsOf(condition)[0] ?? "").match(/\[(.*)\]$/s)?.[1];
  return inside ? Object.fromEntries(inside.split(",").map((pair) => pair.split("=").map((part) => part.trim().replace(/^"|"$/g, "")))) : {};
};
const normal = (values) => JSON.stringify(Object.entries(values).map(([key, value]) => [key, isNaN(value) ? value : Number(value)]).sort());
const severityOf = (condition) => condition.match(/^\w+@([\d.]+)/)?.[1];
let stepsOf = "";
let top = ""; // what is applied after the corruption of the slider, as a condition
const topOf = () => ($("#top").value ? `${$("#top").value}@${$("#top-level").value}` : "");
const fetchSteps = async (parameters) => {
  const name = $("#corruption").value;
  const key = JSON.stringify([name, parameters, top]);
  if (key === stepsOf) return;
  steps = name ? await ask("steps", { corruption: name, params: JSON.stringify(parameters), top }) : [];
  stepsOf = key;
  const slider = $("#severity");
  slider.max = Math.max(0, steps.length - 1);
  slider.disabled = steps.length < 2;
};
const showSlider = () => {
  const severity = severityOf(state.at || "");
  const at = steps.findIndex((each) => each.condition === state.at) >= 0 ? steps.findIndex((each) => each.condition === state.at)
    : steps.findIndex((each) => String(each.severity) === severity);
  if (at >= 0) $("#severity").value = at;
  const label = steps[at];
  $("#severity-words").textContent = label ? `${label.severity ?? label.condition} of ${steps.at(-1).severity ?? ""}`.replace(/ of $/, "") : "";
  $("#severity").setAttribute("aria-valuetext", label ? `${label.words}, ${label.physical[0] ?? ""}` : "clean");
  if (label) $("#unit").textContent = label.physical.slice(0, 3).join(" · ");
};
export const nudge = (by) => {
  if (!steps.length) return;
  const slider = $("#severity");
  const large = steps.length > 12 ? 5 : 1; // half a severity at a time
  const next = Math.max(0, Math.min(steps.length - 1, Number(slider.value) + by * large));
  change({ at: steps[next].condition });
};
let beforeClean = "";
export const toggleClean = () => {
  if ((state.at || "clean") === "clean") change({ at: beforeClean || steps[Number($("#severity").value)]?.condition || "clean" });
  else { beforeClean = state.at; change({ at: "clean" }); }
};
export const toggleWipe = () => change({ mode: state.mode === "wipe" ? "beside" : "wipe" });
export const ladderSteps = () => {
  const whole = steps.filter((each) => each.severity !== null);
  return whole.length > 12 ? whole.filter((_, i) => i % 5 === 0) : whole;
};
export const lookAt = (condition, signal) => ask("look", { image: state.image, condition }, signal);

const follow = async () => { // the controls follow the state
  const condition = state.at || "clean";
  const values = readParameters(condition);
  if (condition !== "clean" && (corruptionOf(condition) !== $("#corruption").value || normal(values) !== normal(parametersOf()))) {
    $("#corruption").value = corruptionOf(condition);
    fillFields(values);
  }
  if (condition !== "clean") {
    top = partsOf(condition).slice(1).join("+");
    $("#top").value = top ? corruptionOf(top) : "";
    fillLevels(severityOf(top));
    $("#top-picks").hidden = !isLive() && !top;
  }
  await fetchSteps(parametersOf());
  showSlider();
  showFields();
};
const fillLevels = (chosen = "3") => {
  const levels = session.corruptions.find((each) => each.name === $("#top").value)?.severities ?? [];
  options($("#top-level"), levels.map((level) => [String(level), String(level)]), levels.map(String).includes(chosen) ? chosen : String(levels.at(-1) ?? ""));
  $("#top-level").closest("label").hidden = !levels.length;
};
const chooseTop = async () => { // a second corruption acts on the image that the first one made
  const before = state.at;
  top = topOf();
  await fetchSteps(parametersOf());
  const now = steps[Number($("#severity").value)];
  if (now && state.at === before) change({ at: now.condition }); // else something else was chosen meanwhile
};
const controls = () => {
  $("#score").value = state.score;
  $("#class").value = state.class;
  $("#wipe").value = state.wipe;
  $("#show-truth").checked = state.truth === "1";
  $("#show-found").checked = state.found === "1";
  $("#wipe-mode").setAttribute("aria-pressed", String(state.mode === "wipe"));
};
const chooseCorruption = async () => {
  const chosen = current();
  if (!chosen) { change({ at: "clean" }); return; }
  const before = state.at;
  fillFields();
  await fetchSteps({});
  if (state.at !== before) return; // something else was chosen meanwhile
  const severity = severityOf(state.at || "") ?? "3";
  const same = steps.find((each) => String(each.severity) === severity) ?? steps[Math.floor(steps.length / 2)];
  if (same) change({ at: same.condition });
  else { $("#fields-box").open = true; $("#unit").textContent = "Set its parameters: it has no severities."; }
};
const chooseParameters = async () => {
  const chosen = current(), parameters = parametersOf();
  try {
    const before = state.at;
    await fetchSteps(parameters);
    if (state.at !== before) return;
    const severity = steps[Number($("#severity").value)]?.severity;
    if (!chosen.severities.length && !Object.keys(parameters).length) return;
    change({ at: steps[Number($("#severity").value)]?.condition ?? written(chosen.name, severity, parameters) });
  } catch (error) { if (!isOld(error)) trouble(error.message); }
};
export const start = (given) => {
  session = given;
  $("#score").closest(".long").hidden = !session.objects;
  $("#show-truth").closest("label").hidden = !session.objects;
  options($("#corruption"), [["", "none"], ...session.corruptions.filter((each) => isLive() || each.stored.length).map((each) => [each.name, each.words])], "");
  options($("#class"), [["", "every class"], ...session.classes.map((name) => [name, name])], state.class);
  $("#legend").hidden = !session.objects;
  $("#legend").replaceChildren(...[["kept", "object found"], ["lost", "lost: found only when clean"], ["missed", "found in neither"],
    ["found", "prediction"], ["new", "new: wrong, and not predicted clean"]].map(([kind, words]) => make("span", {}, make("span", { class: `key ${kind}` }), ` ${words}`)));
  $("#corruption").addEventListener("change", chooseCorruption);
  $("#severity").addEventListener("input", () => { const now = steps[Number($("#severity").value)]; if (now) change({ at: now.condition }); });
  options($("#top"), [["", "nothing more"], ...session.corruptions.filter((each) => each.severities.length).map((each) => [each.name, each.words])], "");
  $("#top-picks").hidden = !isLive();
  ["#top", "#top-level"].forEach((field) => { $(field).disabled = !isLive(); });
  $("#top").addEventListener("change", () => { fillLevels(); chooseTop().catch((error) => trouble(error.message)); });
  $("#top-level").addEventListener("change", () => chooseTop().catch((error) => trouble(error.message)));
  $("#fields").addEventListener("change", chooseParameters);
  $("#score").addEventListener("input", (event) => change({ score: event.target.value }));
  $("#class").addEventListener("change", (event) => change({ class: event.target.value }));
  $("#wipe").addEventListener("input", (event) => change({ wipe: event.target.value }));
  $("#show-truth").addEventListener("change", (event) => change({ truth: event.target.checked ? "1" : "0" }));
  $("#show-found").addEventListener("change", (event) => change({ found: event.target.checked ? "1" : "0" }));
  $("#clean").addEventListener("click", toggleClean);
  $("#wipe-mode").addEventListener("click", toggleWipe);
  $("#mark").addEventListener("click", () => { if (seen.now) { list.toggleMark(seen.now.raw, seen.now.image); describe(); } });
  onChange(async (changed) => {
    controls();
    if (changed.has("at")) follow().catch((error) => trouble(error.message));
    if (changed.has("image") || changed.has("at")) { await show(); showFields(); } else if (["score", "class", "mode", "wipe", "truth", "found"].some((key) => changed.has(key))) draw();
  });
  addEventListener("resize", () => draw());
  controls();
};
export const begin = async () => { await follow(); if (!seen.now) await show(); showFields(); };
export const forget = () => { tallies = new Map(); };
