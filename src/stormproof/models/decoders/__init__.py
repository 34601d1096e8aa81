"""Decoders: pure functions from a network's outputs for one image to candidates in input pixels.

Adding one means writing a function (outputs, input size, *, options) and one row here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from stormproof.models.decoders import anchors, points, queries, semantic, yolo


@dataclass(frozen=True, slots=True)
class Decoder:
    """A decoder, the outputs it wants in order, and what is usual for its networks: from which overlap on
    boxes are suppressed (None: no need), and the input. A card can change both."""

    function: Callable[..., Any]
    wants: tuple[str, ...]
    iou: float | None = None
    task: Literal["detection", "semantic"] = "detection"
    usual: Mapping[str, Any] = field(default_factory=dict)


IMAGENET = {"mean": (123.675, 116.28, 103.53), "std": (58.395, 57.12, 57.375)}
UNIT = {"std": 255}
SYMMETRIC = {"mean": 127.5, "std": 127.5}
LETTERBOX = {"resize": "letterbox", "pad": 114}
NANODET = {
    "channels": "BGR", "mean": (103.53, 116.28, 123.675), "std": (57.375, 57.12, 58.395),
    "resize": "letterbox", "pad": 0,
}  # fmt: skip
CENTERNET = {
    "channels": "BGR", "mean": (104.0, 114.0, 119.9), "std": (73.7, 69.9, 70.9),
    "resize": "letterbox", "pad": 0,
}  # fmt: skip
SCRFD = {
    "mean": 127.5, "std": 128, "resize": "letterbox", "align": "top-left", "pad": 0, "rounding": "down",
}  # fmt: skip
PILLOW = {"interpolation": "antialias", "rounding": "down"}  # how DETR's code and all its kin resize
_HEADS = ("boxes", "scores")

DECODERS: dict[str, Decoder] = {
    "yolox": Decoder(
        yolo.yolox,
        ("rows",),
        0.65,
        usual={"channels": "BGR", **LETTERBOX, "align": "top-left", "rounding": "down"},
    ),
    "yolov5": Decoder(yolo.yolov5, ("rows", "prototypes?"), 0.65, usual={**UNIT, **LETTERBOX}),
    "yolov8": Decoder(yolo.yolov8, ("columns", "prototypes?"), 0.7, usual={**UNIT, **LETTERBOX}),
    "yolov10": Decoder(yolo.rows, ("rows", "prototypes?"), usual={**UNIT, **LETTERBOX}),
    "postprocessed": Decoder(
        anchors.postprocessed, ("boxes", "classes", "scores", "count?"), usual=SYMMETRIC
    ),
    "ssd": Decoder(anchors.ssd, _HEADS, 0.6, usual=SYMMETRIC),
    "ssd-raw": Decoder(anchors.ssd_raw, ("offsets", "scores"), 0.6, usual=SYMMETRIC),
    "boxes": Decoder(anchors.boxes, _HEADS, 0.45, usual=UNIT),
    "efficientdet": Decoder(
        anchors.efficientdet,
        _HEADS,
        0.5,
        usual={**IMAGENET, "resize": "letterbox", "align": "top-left", "pad": 0},
    ),
    "efficientdet-rows": Decoder(anchors.efficientdet_rows, ("rows",)),
    "blazeface": Decoder(
        anchors.blazeface, ("rows", "logits"), 0.3, usual={**SYMMETRIC, "resize": "letterbox", "pad": 0}
    ),
    "scrfd": Decoder(points.scrfd, ("scores and distances per stride",), 0.4, usual=SCRFD),
    "nanodet": Decoder(points.nanodet, ("classes and distances per stride",), 0.6, usual=NANODET),
    "nanodet-plus": Decoder(points.nanodet_plus, ("rows",), 0.6, usual=NANODET),
    "fastestdet": Decoder(points.fastestdet, ("map",), 0.45, usual={"channels": "BGR", **UNIT}),
    "centernet": Decoder(points.centernet, ("heat", "sides", "offsets?"), usual=CENTERNET),
    "detr": Decoder(queries.detr, ("logits", "boxes"), usual={**IMAGENET, **PILLOW}),
    "rtdetr": Decoder(queries.rtdetr, ("logits", "boxes"), usual={**UNIT, **PILLOW}),
    "labelled": Decoder(queries.labelled, ("labels", "boxes", "scores"), usual={**UNIT, **PILLOW}),
    "torchvision": Decoder(
        queries.torchvision, ("boxes", "labels", "scores", "masks?"), usual={**UNIT, "resize": "none"}
    ),
    "logits": Decoder(semantic.logits, ("scores",), task="semantic", usual=IMAGENET),
    "argmax": Decoder(semantic.argmax, ("map",), task="semantic", usual=IMAGENET),
}

# What an option of a decoder says, whichever decoder takes it; the defaults stand in their signatures.
OPTIONS: dict[str, str] = {
    "strides": "input pixels per cell of each feature map",
    "logits": "scores have not been through a sigmoid yet",
    "background": "the first column of scores stands for nothing and is left out",
    "fractions": "boxes are fractions of the input, not pixels",
    "layers": "feature maps with anchors, from stride 16 on",
    "scales": "sides of the smallest and largest anchor, as fractions of the input",
    "anchor_scale": "side of an anchor in strides",
    "each": "anchors per cell and layer",
    "classes": "number of classes, where the table's width does not tell it",
    "peaks": "most objects read from the heat map",
    "channels_last": "planes of scores lie along the last axis",
    "probabilities": "a single plane holds probabilities, cut at ½",
}
