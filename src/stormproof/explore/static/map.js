// The storm map: the report's heat map, which opens a cell by a click or by the keyboard.
import { $, $$, ask, make, newest, options } from "./page.js";
import { change, onChange, state } from "./state.js";

const TWO_COLUMNS = 1100; // pixels from which the microscope is beside the map, as in the style sheet
let themes, library, shown = [];
const isDark = () => (document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark"
  : matchMedia("(prefers-color-scheme: dark)").matches);
const charting = () => (library ??= new Promise((done, failed) => {
  const script = make("script", { src: "vega.js" });
  script.onload = () => done(window.vegaEmbed);
  const unknown = "The charts could not be loaded.";
  script.onerror = () => fetch(script.src).then((answer) => (answer.ok ? unknown : answer.text()), () => unknown)
    .then((why) => failed(new Error(why)));
  document.head.append(script);
}));

const words = (row, measure) => {
  const share = row.pick?.[0] === "absolute" ? `${row.text} ${measure}` : `${row.text} % of the clean ${measure}`;
  const interval = row.low === undefined ? "" : ` (95 %: ${row.low.toFixed(1)} to ${row.high.toFixed(1)})`;
  const where = row.condition || (row.x === "mean" ? `${row.y}, mean` : row.y);
  return `${row.model}, ${where}: ${share}${interval}`;
};

// Where a cell is drawn, in pixels of its plot: marks of the scene graph, inside their groups.
const boundsOf = (view, row) => {
  const look = (mark, dx, dy) => {
    for (const item of mark.items ?? []) {
      if (mark.marktype === "group") {
        for (const inner of item.items ?? []) {
          const met = look(inner, dx + (item.x || 0), dy + (item.y || 0));
          if (met) return met;
        }
      } else if (mark.marktype === "rect" && item.datum?.place === row.place) {
        const { x1, y1, x2, y2 } = item.bounds;
        return [x1 + dx, y1 + dy, x2 - x1, y2 - y1];
      }
    }
    return undefined;
  };
  const [x, y] = view.origin(), padding = view.padding();
  return look(view.scenegraph().root, x + padding.left, y + padding.top);
};
const outline = (one) => {
  const row = one.rows.find((each) => each.place === one.cursor);
  const bounds = row && boundsOf(one.view, row);
  one.frame.hidden = !bounds;
  if (!bounds) return;
  const canvas = $("canvas", one.plot);
  Object.entries({ left: bounds[0] + canvas.offsetLeft, top: bounds[1] + canvas.offsetTop, width: bounds[2], height: bounds[3] })
    .forEach(([key, value]) => { one.frame.style[key] = `${value}px`; });
};
const pick = (row) => {
  if (!row?.condition) return;
  const place = $$("#subject option").findIndex((option) => option.textContent === row.model);
  change({ cell: row.condition, at: row.condition, subject: Math.max(0, place), image: "", error: "", fate: "" });
  if (innerWidth < TWO_COLUMNS) $("#cell").scrollIntoView({ block: "nearest" }); // beside it, the map stays for the next click
};
const move = (one, key) => {
  const places = one.rows.filter((row) => row.condition);
  const now = one.rows.find((row) => row.place === one.cursor) ?? places[0];
  const unique = (field, filter) => [...new Set(places.filter(filter).map((row) => row[field]))];
  const ys = unique("y", () => true), panels = unique("model", () => true);
  const xs = unique("x", (row) => row.y === now.y).sort();
  const step = (list, value, by) => list[Math.max(0, Math.min(list.length - 1, list.indexOf(value) + by))];
  let { x, y, model } = now;
  if (key === "ArrowUp") y = step(ys, y, -1);
  if (key === "ArrowDown") y = step(ys, y, 1);
  if (key === "ArrowRight" && xs.at(-1) === x && panels.at(-1) !== model) [model, x] = [step(panels, model, 1), xs[0]];
  else if (key === "ArrowLeft" && xs[0] === x && panels[0] !== model) [model, x] = [step(panels, model, -1), xs.at(-1)];
  else if (key === "ArrowRight") x = step(xs, x, 1);
  else if (key === "ArrowLeft") x = step(xs, x, -1);
  const next = places.find((row) => row.x === x && row.y === y && row.model === model)
    ?? places.find((row) => row.y === y && row.model === model) ?? now;
  one.cursor = next.place;
  outline(one);
  $("#map-words").textContent = words(next, one.measure);
};

const drawOne = async (data, figure, holder) => {
  const embed = await charting();
  const scale = figure.pick.length ? $("#scale").value : null;
  const rows = figure.rows.filter((row) => scale === null || row.pick[0] === scale).map((row, place) => ({ ...row, place }));
  const plot = make("div", { class: "plot", tabindex: "0", role: "group", "aria-roledescription": "heat map",
    "aria-label": `${figure.title}. Arrows move from cell to cell, Enter opens one.` });
  const frame = make("div", { class: "cursor", hidden: "" });
  holder.append(make("div", { class: "map" }, make("h3", {}, figure.title), plot));
  const width = Math.max(260, plot.clientWidth);
  const theme = isDark() ? "dark" : "light";
  const spec = stormproof.sizing.sized(figure.kind, figure.spec, rows, width);
  const made = await embed(plot, spec, { actions: false, renderer: "canvas", ast: true, defaultStyle: false,
    tooltip: { theme: "custom", disableDefaultStyle: true }, config: stormproof.sizing.configured(themes[theme], figure.kind, width, rows) });
  plot.append(frame);
  const one = { rows, plot, frame, view: made.view, finalize: made.finalize, measure: data.measure, cursor: undefined };
  made.view.addEventListener("click", (_, item) => {
    $("#vg-tooltip-element")?.classList.remove("visible"); // it would lie over the picture
    pick(item?.datum);
  });
  plot.addEventListener("keydown", (event) => {
    if (event.key.startsWith("Arrow")) { event.preventDefault(); event.stopPropagation(); move(one, event.key); }
    if (event.key === "Enter") pick(rows.find((row) => row.place === one.cursor));
  });
  return one;
};
const follow = () => shown.forEach((one) => {
  const name = $(`#subject option[value="${Number(state.subject)}"]`)?.textContent;
  one.cursor = one.rows.find((row) => row.condition && row.condition === state.cell && row.model === name)?.place;
  outline(one);
});
export const draw = newest(async (signal) => {
  const data = await ask("map", { measure: state.measure }, signal);
  const section = $("#storm");
  section.hidden = !data.figures.length && !data.waiting;
  $("#map-note").textContent = data.waiting ? "Scores are being computed; the map comes as soon as they are there." : data.figures[0]?.note ?? "";
  if (!data.figures.length) return data;
  const measures = data.measures.map(([name, section]) => [name, name, section]);
  options($("#measure"), measures, data.measure);
  options($("#r-metric"), measures, $("#r-metric").value || data.measure);
  const scales = [...new Set(data.figures.flatMap((figure) => figure.rows.map((row) => row.pick?.[0])))].filter(Boolean);
  options($("#scale"), scales.map((name) => [name, name]), scales.includes(state.scale) ? state.scale : scales[0]);
  shown.forEach((one) => one.finalize());
  const holder = $("#maps");
  holder.replaceChildren();
  shown = [];
  for (const figure of data.figures) shown.push(await drawOne(data, figure, holder));
  follow();
  performance.mark("map drawn");
  document.documentElement.dataset.map = "drawn";
  return data;
});
export const worst = () => { // the corruption that hurts most, in the middle of its severities
  const rows = shown[0]?.rows.filter((row) => row.condition && row.condition !== "clean") ?? [];
  const same = rows.filter((row) => row.y === rows[0].y && row.model === rows[0].model);
  return same[Math.floor(same.length / 2)]?.condition;
};
export const start = (session) => {
  themes = session.themes;
  if (session.subjects.some((subject) => subject.run)) charting().catch(() => {}); // while the scores are read; drawing tells of a failure
  $("#measure").addEventListener("change", (event) => change({ measure: event.target.value }));
  $("#scale").addEventListener("change", (event) => change({ scale: event.target.value }));
  onChange((changed) => {
    if (changed.has("measure") || changed.has("scale")) draw();
    else if (changed.has("cell") || changed.has("subject")) follow();
  });
  let pause;
  let width = innerWidth;
  addEventListener("resize", () => { clearTimeout(pause); pause = setTimeout(() => { if (innerWidth !== width) { width = innerWidth; draw(); } }, 200); });
};
export { isDark };
