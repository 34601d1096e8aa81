"""The families of networks that a card can name: the decoder of each, its outputs, usual input and limits.

To add one, write a function (outputs, input size, *, options) and declare it, in a file of `families/` or in
a package of your own; those of boxes and label maps are in `decoding`, with one entry each here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from stormproof.core import extensions
from stormproof.core.registry import Registry
from stormproof.models import decoding
from stormproof.models.candidates import Limits

# From a graph, the names and shapes (without the batch) of its outputs, and the size of its input to what a
# card says; empty if the outputs are none of its own. The docstring says how they are recognised.
Rule = Callable[[Any, list[str], Sequence[tuple[int | None, ...]], Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class OutputDecoder:
    """A decoder, the outputs it expects in order, and the defaults for its networks, which a card can change:
    thresholds and the `usual` input. Most families have one training code; `varied` marks those whose
    networks expect different inputs, so that `usual` is a guess. `recognise` tells its networks by their
    outputs, and `options` says what each option of its own means."""

    function: Callable[..., Any]
    outputs: tuple[str, ...]
    limits: Limits = field(default_factory=Limits)
    task: Literal["detection", "semantic"] = "detection"
    usual: Mapping[str, Any] = field(default_factory=dict)
    varied: bool = False
    recognise: Rule | None = None
    options: Mapping[str, str] = field(default_factory=dict)


IMAGENET = {"mean": (123.675, 116.28, 103.53), "std": (58.395, 57.12, 57.375)}
UNIT = {"std": 255}
SYMMETRIC = {"mean": 127.5, "std": 127.5}
LETTERBOX = {"resize": "letterbox", "pad": 114}
YOLO = {**UNIT, **LETTERBOX}
BLACK_BARS = {"resize": "letterbox", "pad": 0}
NANODET = {"channels": "BGR", "mean": (103.53, 116.28, 123.675), "std": (57.375, 57.12, 58.395), **BLACK_BARS}
CENTERNET = {"channels": "BGR", "mean": (104.0, 114.0, 119.9), "std": (73.7, 69.9, 70.9), **BLACK_BARS}
SCRFD = {
    "mean": 127.5, "std": 128, "resize": "letterbox", "align": "top-left", "pad": 0, "rounding": "down",
}  # fmt: skip
PILLOW = {"interpolation": "antialias", "rounding": "down"}  # how DETR's code and its relatives resize
PICODET = {**IMAGENET, "interpolation": "cubic"}
EFFICIENTDET = {**IMAGENET, "resize": "letterbox", "align": "top-left", "pad": 0}
BLAZEFACE = {**SYMMETRIC, **BLACK_BARS}
_HEADS = ("boxes", "scores")
_MASKED = ("rows", "prototypes?")
_BY_STRIDE = ("classes and distances per stride",)
_TOP_LEFT = {**LETTERBOX, "align": "top-left", "rounding": "down"}
# The thresholds that each YOLO's own validation uses.
_YOLOV5, YOLOV8, YOLOV10 = (Limits(0.001, 300, iou) for iou in (0.65, 0.7, None))

DECODERS: Registry[OutputDecoder] = Registry(extensions.DECODERS, "stormproof.models.families")
_OWN: dict[str, OutputDecoder] = {
    "yolox": OutputDecoder(decoding.yolox, ("rows",), _YOLOV5, usual={"channels": "BGR", **_TOP_LEFT}),
    "yolov5": OutputDecoder(decoding.yolov5, _MASKED, _YOLOV5, usual=YOLO),
    "yolov8": OutputDecoder(decoding.yolov8, ("columns", "prototypes?"), YOLOV8, usual=YOLO),
    "yolov10": OutputDecoder(decoding.yolov10, _MASKED, YOLOV10, usual=YOLO),
    "postprocessed": OutputDecoder(
        decoding.postprocessed, ("boxes", "classes", "scores", "count?"), usual=SYMMETRIC, varied=True
    ),
    "ssd": OutputDecoder(decoding.ssd, _HEADS, Limits(iou=0.6), usual=SYMMETRIC, varied=True),
    "ssd-raw": OutputDecoder(
        decoding.ssd_raw, ("offsets", "scores"), Limits(iou=0.6), usual=SYMMETRIC, varied=True
    ),
    "boxes": OutputDecoder(decoding.plain_boxes, _HEADS, Limits(iou=0.45), usual=UNIT, varied=True),
    "efficientdet": OutputDecoder(decoding.efficientdet, _HEADS, Limits(iou=0.5), usual=EFFICIENTDET),
    "efficientdet-rows": OutputDecoder(decoding.efficientdet_rows, ("rows",), varied=True),
    "blazeface": OutputDecoder(decoding.blazeface, ("rows", "logits"), Limits(iou=0.3), usual=BLAZEFACE),
    "scrfd": OutputDecoder(
        decoding.scrfd, ("scores and distances per stride",), Limits(iou=0.4), usual=SCRFD
    ),
    "nanodet": OutputDecoder(decoding.nanodet, _BY_STRIDE, Limits(iou=0.6), usual=NANODET),
    "nanodet-plus": OutputDecoder(decoding.nanodet_plus, ("rows",), Limits(iou=0.6), usual=NANODET),
    "picodet": OutputDecoder(decoding.picodet, _BY_STRIDE, Limits(0.025, iou=0.6), usual=PICODET),
    "fastestdet": OutputDecoder(
        decoding.fastestdet, ("map",), Limits(0.001, iou=0.45), usual={"channels": "BGR", **UNIT}
    ),
    "centernet": OutputDecoder(
        decoding.centernet, ("heat", "sides", "offsets?"), usual=CENTERNET, varied=True
    ),
    "detr": OutputDecoder(decoding.detr, ("logits", "boxes"), usual={**IMAGENET, **PILLOW}),
    "rtdetr": OutputDecoder(decoding.rtdetr, ("logits", "boxes"), usual={**UNIT, **PILLOW}),
    "labelled": OutputDecoder(decoding.labelled, ("labels", "boxes", "scores"), usual={**UNIT, **PILLOW}),
    "torchvision": OutputDecoder(
        decoding.torchvision, ("boxes", "labels", "scores", "masks?"), usual={**UNIT, "resize": "none"}
    ),
    "logits": OutputDecoder(decoding.score_planes, ("scores",), task="semantic", usual=IMAGENET, varied=True),
    "argmax": OutputDecoder(decoding.class_map, ("map",), task="semantic", usual=IMAGENET, varied=True),
}

for _name, _decoder in _OWN.items():
    DECODERS.add(_name, _decoder, module=__name__)

# What each option means, in every decoder that has it; the defaults are in the signatures.
_OPTIONS: dict[str, str] = {
    "strides": "input pixels per cell of each feature map",
    "logits": "scores have not been through a sigmoid yet",
    "background": "the first column of scores means no object and is left out",
    "fractions": "boxes are fractions of the input, not pixels",
    "layers": "feature maps with anchors, from stride 16 on",
    "scales": "sides of the smallest and largest anchor, as fractions of the input",
    "anchor_scale": "side of an anchor in strides",
    "each": "anchors per cell and layer",
    "scale": "input pixels per unit of the boxes; 4 if they are in cells of CenterNet's maps",
    "classes": "number of classes, if the width of the table does not show it",
    "peaks": "most objects read from the heat map",
    "channels_last": "planes of scores lie along the last axis",
    "probabilities": "a single plane holds probabilities, cut at ½",
}


def option_words() -> dict[str, str]:
    """What each option of any decoder means."""
    return _OPTIONS | {name: words for one in DECODERS.values() for name, words in one.options.items()}
