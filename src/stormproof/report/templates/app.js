"use strict";
// Everything on the page that moves. Names of users are only ever set as text, never as markup.
(() => {
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  // --- data: gzip in base64, decoded when it is needed -------------------------------------------
  const unzip = async (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  };
  const kept = new WeakMap();
  const blobOf = (element) => {
    if (!kept.has(element)) kept.set(element, unzip($("script.blob", element).textContent).then(JSON.parse));
    return kept.get(element);
  };
  const loaded = new Promise((done) => (document.readyState === "complete" ? done() : addEventListener("load", done)));
  let library;
  const charting = () => (library ??= $("#charting") ? unzip($("#charting").textContent).then((source) => {
    const script = document.createElement("script");
    script.textContent = `(function(){${source}\n})();`;
    document.body.append(script);
    return window.vegaEmbed;
  }) : loaded.then(() => window.vegaEmbed));

  // --- light and dark ----------------------------------------------------------------------------
  const root = document.documentElement;
  const wanted = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : wanted.matches);
  const themeButton = $("#theme");
  const showTheme = () => {
    themeButton.textContent = isDark() ? "Light" : "Dark";
    themeButton.setAttribute("aria-pressed", String(isDark()));
  };
  const themes = JSON.parse($("#themes").textContent);
  const { configured, sized } = stormproof.sizing;

  // --- figures -------------------------------------------------------------------------------------
  const same = (row, picks) => picks.every((value, i) => value === null || (row.pick ?? [])[i] === value);
  const fillPicks = (figure, data) => {
    $$("select[data-pick]", figure).forEach((select, i) => {
      const before = $$("select[data-pick]", figure).slice(0, i).map((s) => s.value);
      const values = [...new Set(data.rows.filter((row) => same(row, before)).map((row) => row.pick[i]))];
      if (values.join("\0") === select.dataset.values) return;
      const chosen = values.includes(select.value) ? select.value : values[0];
      select.dataset.values = values.join("\0");
      select.replaceChildren(...values.map((value) => new Option(value, value, false, value === chosen)));
      select.closest("label").hidden = values.length < 2;
    });
  };
  const rowsOf = (figure, data) => {
    const group = $("select[data-group]", figure)?.value;
    const picks = $$("select[data-pick]", figure).map((select) => select.value);
    const rows = group ? data.grouped[group] : data.rows;
    return picks.length ? rows.filter((row) => row.part || same(row, picks)) : rows;
  };
  const drawn = new Map();
  const draw = async (figure) => {
    const plot = $(".plot", figure);
    const [embed, data] = await Promise.all([charting(), blobOf(figure)]);
    fillPicks(figure, data);
    const rows = rowsOf(figure, data);
    const width = Math.max(260, plot.clientWidth || $("#main").clientWidth - 96); // what is folded has no width yet
    const theme = isDark() ? "dark" : "light";
    drawn.get(figure)?.finalize();
    plot.replaceChildren();
    if (!rows.length) { plot.textContent = "No number for this choice."; return; }
    const renderer = rows.length > 3000 ? "canvas" : "svg";
    const { kind } = figure.dataset;
    const options = { actions: false, renderer, config: configured(themes[theme], kind, width, rows), tooltip: { theme } };
    const spec = sized(kind, data.spec, rows, width);
    let made = await embed(plot, spec, options);
    const over = plot.clientWidth ? plot.scrollWidth - plot.clientWidth : 0;
    if (over > 0 && spec.facet) { // names beside the panels took more than was left for them
      spec.spec.width = Math.max(90, spec.spec.width - Math.ceil(over / spec.columns) - 1);
      made.finalize();
      made = await embed(plot, spec, options);
    }
    drawn.set(figure, made);
    if (plot.clientWidth && plot.scrollWidth > plot.clientWidth) plot.tabIndex = 0; // what scrolls is reached by keyboard
    else plot.removeAttribute("tabindex");
    $$("svg", plot).forEach((svg) => svg.setAttribute("aria-hidden", "true")); // the figure itself has the words
    plot.classList.add("drawn");
    plot.dataset.width = plot.clientWidth;
  };
  let turn = Promise.resolve();
  const queue = (figure) => (turn = turn.then(() => draw(figure)).catch((error) => {
    $(".plot", figure).textContent = `This figure could not be drawn: ${error.message}`;
    console.error(error);
  }));
  const figures = $$("figure.chart");
  const seen = new Set();
  const once = (figure) => { if (!seen.has(figure)) { seen.add(figure); queue(figure); } };
  const watcher = new IntersectionObserver((entries) => entries.filter((e) => e.isIntersecting)
    .forEach((e) => once(e.target)), { rootMargin: "300px" });
  figures.forEach((figure) => {
    watcher.observe(figure);
    figure.addEventListener("change", () => queue(figure));
  });
  // What is out of sight is drawn when there is nothing else to do, so that a print has it all.
  const later = window.requestIdleCallback ?? ((f) => setTimeout(f, 200));
  const rest = () => {
    const next = figures.find((figure) => !seen.has(figure));
    if (next) { once(next); turn.then(() => later(rest)); } else root.dataset.ready = "yes";
  };
  const resized = () => figures.filter((f) => seen.has(f) && $(".plot", f).dataset.width !== String($(".plot", f).clientWidth)).forEach(queue);
  $$("details").forEach((part) => part.addEventListener("toggle", () => { if (part.open) resized(); }));
  const unfold = () => { // a link into what is folded opens it
    const part = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest("details");
    if (part) part.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
  const redraw = () => figures.filter((figure) => seen.has(figure)).forEach(queue);
  themeButton.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; showTheme(); redraw(); });
  wanted.addEventListener("change", () => { showTheme(); redraw(); });
  let pause;
  addEventListener("resize", () => {
    clearTimeout(pause);
    pause = setTimeout(resized, 200);
  });

  // --- saving --------------------------------------------------------------------------------------
  const save = (name, url) => { const link = make("a", { href: url, download: name }); link.click(); };
  const saveText = (name, text, type) => save(name, URL.createObjectURL(new Blob([text], { type })));
  const saveFigure = async (figure, format) => {
    const data = await blobOf(figure);
    if (format === "csv") return saveText(`${figure.dataset.figure}.csv`, data.csv, "text/csv");
    const embed = await charting();
    const place = make("div", { hidden: "" });
    const rows = rowsOf(figure, data);
    const result = await embed(place, sized(figure.dataset.kind, data.spec, rows, 760),
      { actions: false, renderer: "svg", config: configured(themes.light, figure.dataset.kind, 760, rows) });
    save(`${figure.dataset.figure}.${format}`, await result.view.toImageURL(format, format === "png" ? 3 : 1));
    result.finalize();
  };
  const saveTable = async (table, format) => saveText(`${table.dataset.table}.${format}`, (await blobOf(table))[format], "text/plain");
  addEventListener("click", (event) => {
    const button = event.target.closest?.("button[data-save]");
    if (!button) return;
    const figure = button.closest("figure.chart");
    if (figure) saveFigure(figure, button.dataset.save);
    else saveTable(button.closest(".table"), button.dataset.save);
  });

  // --- tables --------------------------------------------------------------------------------------
  const valueOf = (cell) => (cell.dataset.v === undefined ? cell.textContent.trim() : cell.dataset.v === "" ? null : Number(cell.dataset.v));
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  addEventListener("click", (event) => {
    const button = event.target.closest?.("button.sort");
    if (!button) return;
    const head = button.closest("th");
    const body = $("tbody", head.closest("table"));
    const column = [...head.parentNode.children].indexOf(head);
    const way = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
    [...head.parentNode.children].forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
    const rows = [...body.rows].map((row) => [valueOf(row.cells[column]), row]);
    const empty = (v) => v === null || v === "–" || Number.isNaN(v);
    rows.sort(([a], [b]) => empty(a) - empty(b) || (empty(a) ? 0 : way * compare(a, b)));
    body.append(...rows.map(([, row]) => row));
  });
  addEventListener("beforeprint", () => $$("details").forEach((d) => { d.open = true; }));

  // --- the leaderboard's filters -------------------------------------------------------------------
  $("#filters")?.addEventListener("change", () => {
    const wantedRow = (row) => $$("select[data-filter]").every((s) => !s.value || row.dataset[s.dataset.filter] === s.value);
    $$("tr[data-task]").forEach((row) => { row.hidden = !wantedRow(row); });
    $$("section.board").forEach((board) => { board.hidden = !$("tr[data-task]:not([hidden])", board); });
    $("#count").textContent = `${$$("tr[data-task]:not([hidden])").length} entries`;
  });

  // --- images --------------------------------------------------------------------------------------
  const { labels, outline, shape } = stormproof.drawing;
  const webp = (key) => `data:image/webp;base64,${$(`#webp-${key}`).textContent}`;
  const scene = (image, key, words, outlines, map) => {
    const box = make("div", { class: "scene" });
    box.append(make("img", { src: webp(key), width: image.width, height: image.height, alt: words }));
    if (map) box.append(make("img", { src: webp(map), class: "map", alt: "" }));
    const svg = shape("svg", { viewBox: `0 0 ${image.width} ${image.height}`, "aria-hidden": "true" });
    outlines.forEach(([thing, kind]) => svg.append(outline(thing, kind)));
    svg.append(...labels(outlines.filter(([, , label]) => label), image.width, image.height));
    box.append(svg);
    return box;
  };
  const scored = (thing) => (thing.score === undefined ? thing.name : `${thing.name} ${thing.score.toFixed(2)}`);
  const card = (entry) => {
    const predicted = (things) => things.map((thing) => [thing, "found", ""]);
    const clean = [...entry.objects.map((thing) => [thing, thing.fate === "missed" ? "missed" : "kept", ""]), ...predicted(entry.before)];
    const corrupted = [...entry.objects.map((thing) => [thing, thing.fate, thing.fate === "lost" ? thing.name : ""]),
      ...predicted(entry.after), ...entry.new.map((thing) => [thing, "new", scored(thing)])];
    return make("div", { class: "card" }, make("div", { class: "two" },
      scene(entry, entry.clean, `${entry.image}, clean`, clean, entry.map_before),
      scene(entry, entry.corrupted, `${entry.image} under ${entry.condition}`, corrupted, entry.map_after)),
      make("p", {}, make("strong", {}, entry.under), make("br"), `${entry.counts} ${entry.words}`, make("br"), make("small", {}, entry.image)));
  };
  const browse = (data) => {
    const picks = { image: $("#b-image"), run: $("#b-run"), corruption: $("#b-corruption"), class: $("#b-class") };
    const options = (select, values) => {
      const old = select.value;
      select.replaceChildren(...values.map(([value, text]) => new Option(text, value, false, value === old)));
    };
    const anyClass = "";
    options(picks.run, data.runs.map((name, i) => [String(i), name]));
    options(picks.corruption, data.corruptions.map((c, i) => [String(i), c.name]));
    options(picks.class, [[anyClass, "every class"], ...data.classes.map((name) => [name, name])]);
    const fillImages = () => options(picks.image, data.images.map((image, i) => [String(i), image.id])
      .filter(([i]) => picks.class.value === anyClass || data.images[i].classes.includes(picks.class.value)));
    const show = () => {
      const image = data.images[Number(picks.image.value)];
      const level = $("#b-level");
      const corruption = data.corruptions[Number(picks.corruption.value)];
      level.max = corruption.levels.length;
      level.hidden = level.max < 2; // clean is beside it
      const at = level.hidden ? corruption.levels.length : Math.min(Number(level.value), corruption.levels.length);
      const condition = at === 0 ? "clean" : corruption.levels[at - 1];
      $("#b-said").textContent = condition;
      const least = Number($("#b-score").value);
      $("#b-least").textContent = least.toFixed(2);
      const place = $("#browser");
      if (!image) { place.replaceChildren(make("p", {}, "No image of this class is kept in the report.")); return; }
      const right = (thing) => picks.class.value === anyClass || thing.name === picks.class.value;
      const column = (text) => {
        const cell = image.cells[text];
        if (!cell) return make("div", { class: "card" }, make("p", {}, `${text} is not kept for this image.`));
        const every = cell.found[Number(picks.run.value)] ?? [];
        const found = every.filter((thing) => right(thing) && (thing.score ?? 1) >= least);
        const truth = (cell.truth ?? image.truth).filter(right);
        const showTruth = $("#b-truth").checked, showFound = $("#b-found").checked;
        const map = showFound ? cell.maps?.[Number(picks.run.value)] : showTruth ? image.map : null;
        const words = `${image.id} under ${text}`;
        const outlines = [...(showTruth ? truth : []).map((thing) => [thing, "truth", ""]),
          ...(showFound ? found : []).map((thing) => [thing, "found", scored(thing)])];
        return make("div", { class: "card" }, scene(image, cell.webp, words, outlines, map),
          make("p", {}, cell.maps?.[Number(picks.run.value)] ? `${text}: a class for every pixel` : `${text}: ${found.length} predictions, ${truth.length} true objects`));
      };
      place.replaceChildren(column("clean"), column(condition));
      $("#b-words").textContent = `${image.id}, ${data.runs[Number(picks.run.value)]}, ${condition}`;
    };
    picks.class.addEventListener("change", fillImages);
    fillImages();
    $("#b-level").value = Math.ceil(Math.max(...data.corruptions.map((c) => c.levels.length)) / 2); // the middle
    $("#browser-picks").addEventListener("input", show);
    $("#browser-picks").addEventListener("change", show);
    show();
  };
  const showScenes = async () => {
    const holder = $("#scenes");
    if (!holder) return;
    const data = JSON.parse(await unzip(holder.textContent));
    $$("[data-worst]").forEach((place) => place.append(...data.worst.slice(0, Number(place.dataset.worst)).map(card)));
    if (data.browser && $("#browser")) browse(data.browser);
  };

  showTheme();
  loaded.then(showScenes).then(() => later(rest), (error) => console.error(error));
})();
