// The images of a cell, worst first. Only those in view exist: a hundred thousand scroll like ten.
import { $, $$, address, ask, counted, isOld, make, newest, options, percent, save, trouble } from "./page.js";
import { change, onChange, state } from "./state.js";

const PAGE = 60, HEIGHT = 168, WIDTH = 150, KEPT = 30; // images of a request; pixels of a place; requests kept
let pages = new Map(), total = 0, columns = 1, session;
export const marked = new Map(); // id as the dataset has it → shown

const question = () => ({ subject: state.subject, condition: state.cell || "clean", class: state.shows, slice: state.slice,
  error: state.error, fate: state.fate, score: state.error || state.fate ? state.score : "" });
const page = (number, signal) => {
  if (!pages.has(number)) {
    const asking = ask("cell", { ...question(), first: number * PAGE, count: PAGE }, signal);
    pages.set(number, asking);
    asking.catch(() => pages.delete(number));
    if (pages.size > KEPT) pages.delete(pages.keys().next().value);
  }
  return pages.get(number);
};
const lossWords = (image) => {
  const found = [...new Set([state.error || "lost", state.fate || "lost", "lost", "new", ...session.errors])].filter((name) => image[name]).map((name) => `${image[name]} ${name}`);
  if (found.length) return found.slice(0, 2).join(", ");
  if (image.error === null) return "";
  if (image.clean === null || (state.cell || "clean") === "clean") return `error ${percent(image.error)}`;
  return `error ${percent(image.clean)} → ${percent(image.error)}`;
};
const card = (image, place) => {
  const picture = make("img", { alt: "", width: 134, height: 105 });
  const box = make("button", { type: "button", class: `thumb${marked.has(image.raw) ? " marked" : ""}`, "data-index": image.index,
    "data-place": place, "aria-current": String(String(image.index) === state.image), title: image.id },
  picture, make("span", { class: "id" }, image.id), make("span", { class: "lost" }, lossWords(image)));
  box.addEventListener("click", () => { change({ image: image.index, at: state.cell || "clean" }); });
  setTimeout(() => { if (picture.isConnected) picture.src = address("thumbnail", { image: image.index, condition: state.cell || "clean" }); }, 60);
  return box;
};
let drawn = "";
const show = async (again = false) => {
  const list = $("#list");
  columns = Math.max(1, Math.floor((list.clientWidth - 16) / WIDTH));
  $("#tall").style.height = `${Math.ceil(total / columns) * HEIGHT + 16}px`;
  const first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 1) * columns;
  const last = Math.min(total, (Math.ceil((list.scrollTop + list.clientHeight) / HEIGHT) + 1) * columns);
  const key = `${first} ${last} ${columns}`;
  if (key === drawn && !again) return;
  drawn = key;
  const asked = [];
  for (let number = Math.floor(first / PAGE); number * PAGE < last; number += 1) asked.push(page(number));
  let answers;
  try { answers = await Promise.all(asked); } catch (error) { if (!isOld(error)) trouble(error.message); return; }
  if (drawn !== key) return;
  const images = answers.flatMap((answer) => answer.images.map((image, i) => [image, answer.first + i])).filter(([, i]) => i >= first && i < last);
  const place = $("#window");
  const had = new Map($$(".thumb", place).map((box) => [`${box.dataset.index} ${box.dataset.place}`, box]));
  place.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
  place.style.gridAutoRows = `${HEIGHT - 8}px`;
  place.style.transform = `translateY(${Math.floor(first / columns) * HEIGHT}px)`;
  place.replaceChildren(...images.map(([image, i]) => (again ? undefined : had.get(`${image.index} ${i}`)) ?? card(image, i)));
};
export const fill = newest(async (signal) => {
  const began = performance.now();
  pages = new Map();
  const words = $("#cell-words");
  words.textContent = "Looking …";
  trouble("");
  const first = await page(0, signal);
  total = first.total;
  drawn = "";
  $("#list").scrollTop = 0;
  const counts = [state.error, state.fate && `${state.fate} objects`].filter(Boolean).join(" and ");
  const sorted = counts ? `with ${counts}, most first` : state.cell && state.cell !== "clean" ? "worst first: the rise of each image's error" : "largest error first";
  words.textContent = `${counted(total, "image")} under ${state.cell || "clean"}, ${first.images.every((image) => image.error === null) && total ? "in the dataset's order" : sorted}`;
  await show(true);
  performance.measure("cell listed", { start: began });
  document.documentElement.dataset.cell = state.cell || "clean";
  if (state.image === "" && first.images.length) await change({ image: first.images[0].index });
});
export const step = async (by) => {
  const now = $(`.thumb[data-index="${CSS.escape(state.image)}"]`);
  const wanted = Math.max(0, Math.min(total - 1, (now ? Number(now.dataset.place) : here) + by));
  const answer = await page(Math.floor(wanted / PAGE));
  const image = answer.images[wanted - answer.first];
  if (!image) return;
  here = wanted;
  const list = $("#list"), top = Math.floor(wanted / columns) * HEIGHT;
  if (top < list.scrollTop || top + HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = Math.max(0, top - HEIGHT);
  change({ image: image.index });
};
let here = 0;

// --- marks: ids that leave the page as a list ---------------------------------------------------------
const KEY = () => `stormproof marks ${session.dataset}`;
export const showMarks = () => {
  $("#marks").textContent = marked.size ? `${counted(marked.size, "image")} marked` : "No image marked";
  ["#save-marks", "#save-slice", "#clear-marks"].forEach((button) => { $(button).disabled = !marked.size; });
  try { sessionStorage.setItem(KEY(), JSON.stringify([...marked])); } catch { /* a frame may have no storage */ }
  show(true);
};
let heardMarks = () => {};
export const onMarks = (listener) => { heardMarks = listener; };
export const toggleMark = (raw, name) => { if (!marked.delete(raw)) marked.set(raw, name); showMarks(); heardMarks(); };
const line = (text) => (/[\n\r]/.test(text) ? JSON.stringify(text) : text);
const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

const fillFilters = () => {
  options($("#f-class"), [["", "any class"], ...session.classes.map((name) => [name, name])], state.shows);
  options($("#f-attribute"), [["", "all images"], ...session.attributes.map((name) => [name, name])], state.slice.split(":")[0]);
  options($("#f-error"), [["", "any or none"], ...session.errors.map((name) => [name, name])], state.error);
  $("#f-fate").value = state.fate;
  ["#f-error", "#f-fate"].forEach((field) => { $(field).closest("label").hidden = !session.objects; });
};
const fillSlices = newest(async (signal) => {
  const name = $("#f-attribute").value, label = $("#f-slice").closest("label");
  label.hidden = !name;
  if (!name) return;
  const answer = await ask("slices", { name }, signal);
  $("#f-slice-name").textContent = `${answer.name} is`;
  const chosen = state.slice.startsWith(`${name}:`) ? state.slice.slice(name.length + 1) : answer.values[0];
  options($("#f-slice"), answer.values.map((value) => [value, value]), chosen);
  if (answer.values.length) change({ slice: `${name}:${chosen}` });
});
export const start = (given) => {
  session = given;
  const conditions = ["clean", ...session.conditions.filter((text) => text !== "clean")];
  options($("#condition"), conditions.map((text) => [text, text]), state.cell || "clean");
  options($("#subject"), session.subjects.map((subject, i) => [String(i), subject.name]), state.subject);
  $("#subject-label").hidden = session.subjects.length < 2;
  if (!session.subjects.some((subject) => subject.run)) $$("#cell .picks label").forEach((label) => { label.hidden = !label.contains($("#f-attribute")); });
  fillFilters();
  if (state.slice) fillSlices();
  $("#subject").addEventListener("change", (event) => change({ subject: event.target.value }));
  $("#condition").addEventListener("change", (event) => change({ cell: event.target.value, at: event.target.value, image: "" }));
  $("#f-class").addEventListener("change", (event) => change({ shows: event.target.value, image: "" }));
  $("#f-error").addEventListener("change", (event) => change({ error: event.target.value, image: "" }));
  $("#f-fate").addEventListener("change", (event) => change({ fate: event.target.value, image: "" }));
  $("#f-attribute").addEventListener("change", () => { if (!$("#f-attribute").value) change({ slice: "", image: "" }); fillSlices(); });
  $("#f-slice").addEventListener("change", (event) => change({ slice: `${$("#f-attribute").value}:${event.target.value}`, image: "" }));
  $("#list").addEventListener("scroll", () => requestAnimationFrame(() => show()));
  addEventListener("resize", () => show());
  try { JSON.parse(sessionStorage.getItem(KEY()) ?? "[]").forEach(([raw, name]) => marked.set(raw, name)); } catch { /* nothing kept */ }
  $("#save-marks").addEventListener("click", () => save("ids.txt", new Blob([[...marked.keys()].map((raw) => `${line(raw)}\n`).join("")], { type: "text/plain" })));
  $("#save-slice").addEventListener("click", () => save("marked.csv", new Blob(["image,marked\n", ...[...marked.keys()].map((raw) => `${quoted(raw)},yes\n`)], { type: "text/csv" })));
  $("#clear-marks").addEventListener("click", () => { marked.clear(); showMarks(); heardMarks(); });
  onChange((changed) => {
    if (["cell", "subject", "shows", "slice", "error", "fate"].some((key) => changed.has(key))
      || (changed.has("score") && (state.error || state.fate))) {
      fillFilters();
      $("#condition").value = state.cell || "clean";
      $("#subject").value = state.subject;
      return fill();
    }
    if (changed.has("image")) $$(".thumb").forEach((box) => box.setAttribute("aria-current", String(box.dataset.index === state.image)));
    return undefined;
  });
  showMarks();
};
