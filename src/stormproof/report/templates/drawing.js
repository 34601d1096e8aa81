"use strict";
// Objects over an image, in the colours of the report.
(globalThis.stormproof ??= {}).drawing = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const shape = (tag, attributes) => {
    const element = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const colours = { truth: "#2ee6a8", found: "#ff9a3d", kept: "#2ee6a8", lost: "#ff4d5e", missed: "#d9dee3", new: "#d98cff" };
  const dashes = { found: "5 3", missed: "2 3", new: "5 3" };
  const outline = (thing, kind, label) => {
    const group = document.createElementNS(SVG, "g");
    const [x1, y1, x2, y2] = thing.box;
    const dash = kind in dashes ? { "stroke-dasharray": dashes[kind] } : {};
    const line = thing.outline ? { d: thing.outline } : { d: `M${x1} ${y1}H${x2}V${y2}H${x1}Z` };
    group.append(shape("path", { ...line, fill: "none", stroke: "#000", "stroke-opacity": ".55", "stroke-width": 4 }),
      shape("path", { ...line, fill: "none", stroke: colours[kind], "stroke-width": kind === "lost" || kind === "new" ? 3 : 2, ...dash }));
    if (label) group.append(written(label, x1 + 3, Math.max(11, y1 - 4)));
    return group;
  };
  const written = (label, x, y, size = 11) => {
    const text = shape("text", { x, y, "font-size": size, "font-family": "system-ui, sans-serif",
      fill: "#fff", stroke: "#000", "stroke-width": 3, "paint-order": "stroke" });
    text.textContent = label;
    return text;
  };
  // Labels beside their boxes, inside the image and clear of each other; one that fits nowhere is left out.
  const labels = (things, width, height) => {
    const taken = [];
    return things.flatMap(([{ box: [x1, y1, , y2] }, , label]) => {
      const long = 7.5 * label.length, x = Math.max(2, Math.min(x1 + 3, width - long));
      const y = [y1 - 4, y1 + 12, y2 + 12, y2 - 4].find((at) => at > 10 && at < height - 2
        && taken.every(([left, right, other]) => x > right || x + long < left || Math.abs(at - other) > 12));
      if (y === undefined) return [];
      taken.push([x, x + long, y]);
      return [written(label, x, y, 13)];
    });
  };
  return { labels, outline, shape, colours, dashes };
})();
