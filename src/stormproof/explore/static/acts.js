// From a look to an act: copies as command, requirement and Python, the picture and the data as files.
import { $, ask, asked, copy, make, newest, save, trouble } from "./page.js";
import { link, onChange, state } from "./state.js";
import * as list from "./list.js";
import * as microscope from "./microscope.js";

const NAMES = [["condition", "Condition"], ["requirement", "Requirement"], ["gate", "Gate, on new images"], ["run", "Run"], ["corrupt", "Copies"], ["python", "Python"]];
const fill = newest(async (signal) => {
  if (!$("#acts").open || state.image === "") return;
  const bound = $("#r-bound").value;
  const answer = await ask("acts", { subject: state.subject, image: state.image, condition: state.at || "clean",
    metric: $("#r-metric").value, bound, threshold: $("#r-threshold").value }, signal);
  trouble("");
  $("#verdict").textContent = answer.verdict ? `This run now: ${answer.verdict}` : "";
  $("#peeking").textContent = answer.peeking ?? "";
  if (list.marked.size) answer.run += " --images ids.txt";
  $("#copies").replaceChildren(...NAMES.filter(([key]) => answer[key]).flatMap(([key, name]) => {
    const button = make("button", { type: "button", "aria-label": `Copy ${name}` }, "Copy");
    button.addEventListener("click", async () => { await copy(answer[key], name); button.textContent = "Copied"; });
    return [make("dt", {}, name), make("dd", {}, make("pre", { "data-copy": key, tabindex: "0" }, answer[key])), make("dd", {}, button)];
  }));
  $("#acts").dataset.of = state.at || "clean";
});

// --- the picture as a file: pixels, what is drawn over them, and a legend ---------------------------------
const bitmapOf = (svg, width, height) => new Promise((done, failed) => {
  const copied = svg.cloneNode(true);
  copied.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copied.setAttribute("width", width);
  copied.setAttribute("height", height);
  const image = new Image();
  image.onload = () => done(image);
  image.onerror = () => failed(new Error("The picture could not be drawn."));
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copied))}`;
});
const savePicture = async () => {
  const { now, clean } = microscope.seen;
  if (!now) return;
  const place = Number(state.subject);
  const box = document.querySelector(`#pictures .of[data-subject="${place}"]`);
  const looks = now.condition === "clean" ? [clean] : [clean, now];
  const gap = 8, foot = 74;
  const canvas = make("canvas");
  canvas.width = looks.reduce((sum, look) => sum + look.width, gap * (looks.length - 1));
  canvas.height = now.height + foot;
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  const images = [...box.querySelectorAll("img:not(.painted)")], painted = [...box.querySelectorAll("img.painted")];
  let left = 0;
  for (const [i, look] of looks.entries()) {
    pen.drawImage(images[i], left, 0, look.width, look.height);
    if (painted[i]) { pen.globalAlpha = 0.55; pen.drawImage(painted[i], left, 0, look.width, look.height); pen.globalAlpha = 1; }
    pen.drawImage(await bitmapOf(microscope.overlay(look, place, look.width), look.width, look.height), left, 0);
    left += look.width + gap;
  }
  pen.fillStyle = "#1c2126";
  pen.font = "14px system-ui, sans-serif";
  const who = document.querySelector(`#subject option[value="${place}"]`)?.textContent ?? "";
  pen.fillText(`${who}: ${now.image}, ${now.condition}${now.physical[0] ? ` (${now.physical[0]})` : ""}${now.subjects[place].judged ? `, scores from ${Number(state.score).toFixed(2)}` : ""}`, 6, now.height + 20, canvas.width - 12);
  const ofObjects = [["kept", "object found"], ["lost", "lost"], ["missed", "missed"], ["found", "prediction"], ["new", "new"]]
    .map(([kind, words]) => [words, stormproof.drawing.colours[kind], stormproof.drawing.dashes[kind]]);
  const held = now.subjects[place];
  const keys = held.pixels && !held.judged ? microscope.shownClasses(held) : ofObjects;
  keys.reduce((x, [words, colour, dash]) => {
    pen.lineWidth = 3;
    pen.strokeStyle = colour;
    pen.setLineDash((dash ?? "").split(" ").filter(Boolean).map(Number));
    pen.strokeRect(x, now.height + 34, 18, 12);
    pen.fillText(words, x + 26, now.height + 45);
    return x + 46 + pen.measureText(words).width;
  }, 8);
  pen.fillText("stormproof", 6, now.height + 66);
  const blob = await new Promise((done) => { canvas.toBlob(done, "image/png"); });
  save(`${now.image}-${now.condition}.png`.replace(/[^\w.@-]+/g, "-"), blob);
};
const saveTable = async () => {
  const { now } = microscope.seen;
  if (!now) return;
  const answer = await asked("table", { image: now.index, condition: now.condition });
  save(`${now.image}-${now.condition}.csv`.replace(/[^\w.@-]+/g, "-"), await answer.blob());
};
const guarded = (work) => () => work().catch((error) => trouble(error.message));
export const start = () => {
  $("#acts").addEventListener("toggle", fill);
  ["#r-metric", "#r-bound", "#r-threshold"].forEach((field) => $(field).addEventListener("input", fill));
  list.onMarks(fill);
  $("#save-png").addEventListener("click", guarded(savePicture));
  $("#save-csv").addEventListener("click", guarded(saveTable));
  $("#copy-link").addEventListener("click", () => copy(link(), "Link"));
  onChange((changed) => { if (["at", "image", "subject"].some((key) => changed.has(key))) fill(); });
};
