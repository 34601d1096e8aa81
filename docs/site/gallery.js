// The sliders of the gallery: each shows its own picture under another condition.
document.addEventListener("input", (event) => {
  const figure = event.target.closest(".storm-gallery figure");
  if (!figure) return;
  const picture = figure.querySelector("img");
  const place = event.target.value;
  const text = picture.dataset.conditions.split("|")[place];
  picture.src = `${picture.dataset.storm}-${place}.webp`;
  picture.alt = text;
  figure.querySelector("code").textContent = text;
});
