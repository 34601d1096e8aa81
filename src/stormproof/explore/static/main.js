// The desk: what there is, then the map, the list and the microscope; keys; how far a run has come.
import { $, ask, counted, say, trouble } from "./page.js";
import { change, onChange, reset, state } from "./state.js";
import * as acts from "./acts.js";
import * as ladder from "./ladder.js";
import * as list from "./list.js";
import * as map from "./map.js";
import * as microscope from "./microscope.js";

const POLL = 3000; // ms between questions about a run that is not finished
const root = document.documentElement;
const showTheme = () => {
  $("#theme").textContent = map.isDark() ? "Light" : "Dark";
  $("#theme").setAttribute("aria-pressed", String(map.isDark()));
};
const toggleKeys = () => {
  $("#keys").hidden = !$("#keys").hidden;
  $("#help").setAttribute("aria-expanded", String(!$("#keys").hidden));
};
let first = {}, subjects = [];
const isScored = (now) => subjects.every((subject, i) => !subject.run || now.scored[i] || now.problems[i]);
const start = () => reset(first);
const KEYS = {
  ArrowLeft: () => list.step(-1), ArrowRight: () => list.step(1), ArrowUp: () => microscope.nudge(1), ArrowDown: () => microscope.nudge(-1),
  c: microscope.toggleClean, w: microscope.toggleWipe, b: ladder.climb, m: () => $("#mark").click(), r: start, "?": toggleKeys,
};
addEventListener("keydown", (event) => {
  const inField = event.target.closest?.("input, select, textarea, #list, [role=region]") && event.key.startsWith("Arrow");
  const typing = event.target.closest?.("input:not([type=range]):not([type=checkbox]), textarea, select");
  if (event.ctrlKey || event.metaKey || event.altKey || inField || typing || !(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});
const watch = async (now, ready) => { // `ready` is called once the scores there are have been drawn
  let before = "";
  for (;;) {
    const running = now.runs.filter(Boolean);
    $("#progress").textContent = running.map(({ done, of }) => `running: ${done} of ${of} cells (${Math.floor((100 * done) / of)} %)`).join("; ")
      + (running.length ? `; ${now.images.map((count) => counted(count, "image")).join(" and ")} shown` : "");
    const problem = now.problems.find(Boolean);
    if (problem) trouble(problem);
    const key = JSON.stringify([now.images, now.scored, now.waiting]);
    if (key !== before) {
      const again = before !== "";
      before = key;
      if (again) { microscope.forget(); list.fill(); }
      await map.draw();
    }
    if (isScored(now)) ready();
    if (!running.length && !now.waiting) return;
    await new Promise((done) => { setTimeout(done, isScored(now) ? POLL : 100); });
    try {
      now = await ask("progress");
    } catch (error) { // fetch raises a TypeError where nobody answers
      $("#progress").textContent = error instanceof TypeError ? "The server has stopped." : error.message;
      ready();
      return;
    }
  }
};
const begin = async () => {
  const [session, now] = await Promise.all([ask("session"), ask("progress")]);
  subjects = session.subjects;
  $("#title").textContent = `${subjects.map((subject) => subject.name).join(" and ")} on ${session.dataset}, ${counted(session.images, "image")}`;
  document.title = `${subjects.map((subject) => subject.name).join(", ")} · Explore · Stormproof`;
  if (!subjects.some((subject) => subject.run)) $("#storm").hidden = true;
  const most = session.conditions.find((text) => text !== "clean");
  first = { cell: "", at: most ?? "clean", image: "" };
  [map, list, microscope].forEach((part) => part.start(session));
  [ladder, acts].forEach((part) => part.start());
  const isFresh = !state.at && !state.cell;
  const mapping = new Promise((ready) => { watch(now, ready).catch(ready); }).then(() => { // whoever has chosen nothing yet looks at what hurts most
    const worst = map.worst();
    const isUntouched = isFresh && (!state.at || state.at === first.at) && !state.cell;
    if (worst) Object.assign(first, { cell: worst, at: worst });
    return worst && isUntouched ? change(first) : undefined; // the list is of what the microscope shows
  });
  if (isFresh && isScored(now)) await mapping; // with scores at hand, nothing else is looked at before
  if (!state.at) change({ at: state.cell || first.at });
  if (!microscope.seen.now) {
    await list.fill();
    await microscope.begin();
  }
  await mapping;
  root.dataset.ready = "yes";
};
$("#theme").addEventListener("click", () => { root.dataset.theme = map.isDark() ? "light" : "dark"; showTheme(); map.draw(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { showTheme(); map.draw(); });
$("#previous").addEventListener("click", () => list.step(-1));
$("#next").addEventListener("click", () => list.step(1));
$("#help").addEventListener("click", toggleKeys);
$("#reset").addEventListener("click", () => { start(); say("Everything as at the start"); });
onChange((changed) => { if (changed.has("image") && state.image === "" && !["cell", "subject", "shows", "slice", "error", "fate"].some((key) => changed.has(key))) list.fill(); });
showTheme();
begin().catch((error) => trouble(error.message));
