"""Draws truth or a prediction over an image."""

from __future__ import annotations

from collections.abc import Sequence
from colorsys import hsv_to_rgb
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont

from stormproof.core.forms import FORMS
from stormproof.core.sample import Floats, Image, Instances, Ints, Prediction, Sample, as_rgb

Colour = tuple[int, int, int]
_WHITE: Colour = (255, 255, 255)
_COVER = 0.45  # opacity of a mask


def draw(
    sample: Sample | Image, prediction: Prediction | None = None, *, score: float = 0.3
) -> PIL.Image.Image:
    """The image with a prediction's objects, label map or segments drawn on it, in the dataset's labels.

    Detections below `score` are left out. Without a prediction, the sample's own truth is drawn. A notebook
    shows the result; `.save(path)` keeps it.
    """
    if not isinstance(sample, Sample):
        sample = Sample("", sample)
    pixels = as_rgb(sample.image).copy()
    if prediction is None:
        objects, semantic = sample.truth.instances, sample.truth.semantic
        if objects is not None and len(objects):
            return _objects(pixels, objects, np.arange(len(objects)), sample.classes)
        return PIL.Image.fromarray(
            pixels if semantic is None else _map(pixels, semantic.labels, semantic.ignore)
        )
    drawn = painted_map(prediction)
    if drawn is not None:
        return PIL.Image.fromarray(_map(pixels, *drawn))
    kept = np.flatnonzero(prediction.scores >= score)
    kept = kept[np.argsort(prediction.scores[kept], kind="stable")]  # the most confident on top
    return _objects(pixels, prediction, kept, sample.classes)


def painted_map(prediction: Prediction) -> tuple[npt.NDArray[Any], int] | None:
    """The class of each pixel, and the one that means none, of the first map that a prediction holds."""
    for name in prediction.forms:
        paint = FORMS[name].paint
        if paint is not None:
            return paint(prediction.value(name))
    return None


def strokes(holder: Instances | Prediction, entry: int) -> list[Floats]:
    """The lines that draw what an object carries beside its box, as arrays of points x, y."""
    drawn = ((FORMS[name].lines, values[entry]) for name, values in holder.data.items())
    lines = [np.asarray(line, np.float64) for draw, own in drawn if draw is not None for line in draw(own)]
    return [line for line in lines if len(line) and np.isfinite(line).all()]


def colour(label: int) -> Colour:
    """A colour per label: hues a golden angle apart, so that neighbours differ."""
    red, green, blue = hsv_to_rgb(label * 0.618034 % 1.0, 0.75 - 0.25 * (label // 8 % 2), 0.95)
    return round(255 * red), round(255 * green), round(255 * blue)


def _objects(
    pixels: Image, holder: Instances | Prediction, chosen: Ints, classes: Sequence[str]
) -> PIL.Image.Image:
    """The chosen objects, one over the other, with masks, boxes, names and whatever else they carry."""
    scores = holder.scores if isinstance(holder, Prediction) else None
    for i in chosen.tolist() if holder.masks is not None else ():
        where = holder.masks[i].to_mask()  # type: ignore[index]
        pixels[where] = (1 - _COVER) * pixels[where] + _COVER * np.array(colour(int(holder.labels[i])))
    shown = PIL.Image.fromarray(pixels)
    pen = PIL.ImageDraw.Draw(shown)
    thick = max(1, round(max(shown.size) / 400))
    font = PIL.ImageFont.load_default(size=max(10, round(max(shown.size) / 45)))
    for i in chosen.tolist():
        box, label = holder.boxes[i].tolist(), int(holder.labels[i])
        pen.rectangle(box, outline=colour(label), width=thick)
        for line in strokes(holder, i):
            pen.line([(x, y) for x, y in line.tolist()], fill=colour(label), width=thick)
        name = classes[label] if 0 <= label < len(classes) else str(label)
        write_label(pen, box, name if scores is None else f"{name} {scores[i]:.2f}", colour(label), font)
    return shown


def write_label(
    pen: PIL.ImageDraw.ImageDraw, box: list[float], words: str, fill: Colour, font: object
) -> None:
    """Write a label above the box if there is room, else inside it."""
    left, top, right, bottom = pen.textbbox((0, 0), words, font)  # type: ignore[arg-type]
    height = bottom - top + 4
    x, y = max(box[0], 0), box[1] - height if box[1] >= height else box[1]
    pen.rectangle((x, y, x + right - left + 4, y + height), fill)
    dark = (sum(fill) / 3) > 140
    pen.text((x + 2 - left, y + 2 - top), words, (0, 0, 0) if dark else _WHITE, font)  # type: ignore[arg-type]


def _map(pixels: Image, labels: npt.NDArray[np.uint8] | npt.NDArray[np.uint16], ignore: int) -> Image:
    known = np.where(labels == ignore, 0, labels)
    table = np.array([colour(label) for label in range(int(known.max(initial=0)) + 1)], np.float64)
    mixed = (1 - _COVER) * pixels + _COVER * table[known]
    return np.where((labels == ignore)[..., None], pixels, mixed).astype(np.uint8)
