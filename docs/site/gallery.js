// The sliders of the gallery: each shows another severity of its own picture.
document.addEventListener("input", (event) => {
  const figure = event.target.closest(".storm-gallery figure");
  if (!figure) return;
  const picture = figure.querySelector("img");
  const severity = event.target.value;
  picture.src = `${picture.dataset.storm}-${severity}.webp`;
  const name = picture.dataset.storm.split("/").pop();
  const text = severity === "0" ? "clean" : `${name}@${severity}`;
  picture.alt = text;
  figure.querySelector("code").textContent = text;
});
