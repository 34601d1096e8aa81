"use strict";
// A figure's specification in the width that there is.
(globalThis.stormproof ??= {}).sizing = (() => {
  const LETTER = 7; // pixels of a letter of an axis or legend, at most
  const configured = (base, kind, width, rows) => {
    const longest = (key) => rows.reduce((most, row) => Math.max(most, String(row[key] ?? "").length), 0); // letters of a name
    const named = kind === "bars" || kind === "stack"; // the legend begins beside the names
    const left = named ? 40 + Math.min(180, LETTER * longest("x")) : 60;
    const name = LETTER * Math.max(longest("series"), longest("dash"));
    const columns = Math.max(1, Math.floor((width - left) / (30 + Math.min(280, name))));
    return { ...base, legend: { ...base.legend, columns, titleLimit: width < 600 ? 220 : 320,
      gradientLength: Math.min(180, Math.round(width / 4)) } };
  };
  const inTwoLines = (words) => {
    if (words.length < 20) return words;
    const half = words.lastIndexOf(" ", words.length / 2 + 4);
    return half < 0 ? words : [words.slice(0, half), words.slice(half + 1)];
  };
  const sized = (kind, from, rows, width) => {
    const spec = JSON.parse(JSON.stringify(from));
    spec.datasets = { rows };
    const inner = spec.facet ? spec.spec : spec;
    const count = (key) => new Set(rows.map((row) => row[key])).size;
    if (spec.facet) {
      const heat = kind === "heat"; // its panels share the names on the left
      const names = heat ? 8 : kind === "bars" ? 190 : 62;
      const least = heat ? 40 + 34 * count("x") : kind === "bars" ? 340 : 230;
      const room = heat ? width - (width < 600 ? 130 : 170) : width;
      const columns = Math.max(1, Math.min(count("panel"), 4, Math.floor(room / least)));
      spec.columns = columns;
      spec.facet.sort = [...new Set(rows.map((row) => row.panel))];
      inner.width = Math.max(90, Math.floor((room - 24) / columns) - names);
    } else {
      spec.width = width;
      spec.autosize = { type: "fit-x", contains: "padding" };
    }
    if (kind === "heat") {
      const longest = (key) => Math.max(...rows.map((row) => String(row[key]).length));
      if (width < 600 && !spec.facet && count("x") > count("y") && longest("x") > longest("y")) { // long names go where there is room
        inner.layer.forEach(({ encoding: { x, y } }) => {
          [x.field, y.field, x.title, y.title, x.sort, y.sort] = [y.field, x.field, y.title, x.title, y.sort, x.sort];
        });
      }
      if (width < 600) inner.layer.forEach(({ encoding: { y } }) => { y.axis = { ...y.axis, labelLimit: 150 }; });
      const { x, color } = inner.layer[0].encoding, cell = (spec.facet ? inner.width : width - 170) / count(x.field);
      if (LETTER * longest(x.field) < cell) x.axis = { ...x.axis, labelAngle: 0 };
      if (width < 600) color.legend = { ...color.legend, title: inTwoLines(color.legend.title) }; // it begins beside the names
      if (count("x") * 30 > (spec.facet ? inner.width + 8 : width - 170)) inner.layer = inner.layer.slice(0, 1);
    } else if (kind === "points" && width < 700) { // no room for words: they are in the tooltips
      if (inner.layer) inner.layer = inner.layer.filter((layer) => !layer.encoding.text);
    } else if (kind === "radar") {
      spec.width = Math.min(width, 560);
      inner.height = Math.round(spec.width * 0.86);
    }
    return spec;
  };
  return { configured, sized };
})();
