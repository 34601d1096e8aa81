"""Draws truth or a prediction over an image."""

from __future__ import annotations

from collections.abc import Sequence
from colorsys import hsv_to_rgb

import numpy as np
import numpy.typing as npt
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont

from stormproof.core.sample import RLE, SEGMENTS, Floats, Image, Ints, Prediction, Sample, as_rgb

Colour = tuple[int, int, int]
NO_CLASS = 65535  # of a pixel of a panoptic map
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
            return _objects(pixels, objects.boxes, objects.labels, None, objects.masks, sample.classes)
        return PIL.Image.fromarray(
            pixels if semantic is None else _map(pixels, semantic.labels, semantic.ignore)
        )
    if prediction.panoptic is not None:
        return PIL.Image.fromarray(_map(pixels, class_map(prediction.panoptic), NO_CLASS))
    if prediction.semantic is not None:
        return PIL.Image.fromarray(_map(pixels, prediction.semantic, 255))
    kept = np.flatnonzero(prediction.scores >= score)
    kept = kept[np.argsort(prediction.scores[kept], kind="stable")]  # the most confident on top
    masks = None if prediction.masks is None else tuple(prediction.masks[i] for i in kept.tolist())
    boxes, labels = prediction.boxes[kept], prediction.labels[kept]
    return _objects(pixels, boxes, labels, prediction.scores[kept], masks, sample.classes)


def colour(label: int) -> Colour:
    """A colour per label: hues a golden angle apart, so that neighbours differ."""
    red, green, blue = hsv_to_rgb(label * 0.618034 % 1.0, 0.75 - 0.25 * (label // 8 % 2), 0.95)
    return round(255 * red), round(255 * green), round(255 * blue)


def _objects(
    pixels: Image,
    boxes: Floats,
    labels: Ints,
    scores: Floats | None,
    masks: tuple[RLE, ...] | None,
    classes: Sequence[str],
) -> PIL.Image.Image:
    for mask, label in zip(masks or (), labels.tolist(), strict=False):
        where = mask.to_mask()
        pixels[where] = (1 - _COVER) * pixels[where] + _COVER * np.array(colour(label))
    shown = PIL.Image.fromarray(pixels)
    pen = PIL.ImageDraw.Draw(shown)
    thick = max(1, round(max(shown.size) / 400))
    font = PIL.ImageFont.load_default(size=max(10, round(max(shown.size) / 45)))
    for i, (box, label) in enumerate(zip(boxes.tolist(), labels.tolist(), strict=True)):
        pen.rectangle(box, outline=colour(label), width=thick)
        name = classes[label] if 0 <= label < len(classes) else str(label)
        _label(pen, box, name if scores is None else f"{name} {scores[i]:.2f}", colour(label), font)
    return shown


def _label(pen: PIL.ImageDraw.ImageDraw, box: list[float], words: str, fill: Colour, font: object) -> None:
    """Write a label above the box if there is room, else inside it."""
    left, top, right, bottom = pen.textbbox((0, 0), words, font)  # type: ignore[arg-type]
    height = bottom - top + 4
    x, y = max(box[0], 0), box[1] - height if box[1] >= height else box[1]
    pen.rectangle((x, y, x + right - left + 4, y + height), fill)
    dark = (sum(fill) / 3) > 140
    pen.text((x + 2 - left, y + 2 - top), words, (0, 0, 0) if dark else _WHITE, font)  # type: ignore[arg-type]


def class_map(panoptic: npt.NDArray[np.int32]) -> npt.NDArray[np.uint16]:
    """The class of each pixel of a panoptic map; `NO_CLASS` in no segment and along edges of segments."""
    labels = np.where(panoptic == 0, NO_CLASS, panoptic // SEGMENTS - 1).astype(np.uint16)
    labels[:, 1:][panoptic[:, 1:] != panoptic[:, :-1]] = NO_CLASS
    labels[1:][panoptic[1:] != panoptic[:-1]] = NO_CLASS
    return labels


def _map(pixels: Image, labels: npt.NDArray[np.uint8] | npt.NDArray[np.uint16], ignore: int) -> Image:
    known = np.where(labels == ignore, 0, labels)
    table = np.array([colour(label) for label in range(int(known.max(initial=0)) + 1)], np.float64)
    mixed = (1 - _COVER) * pixels + _COVER * table[known]
    return np.where((labels == ignore)[..., None], pixels, mixed).astype(np.uint8)
