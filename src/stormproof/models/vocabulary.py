"""Class names: the lists that models are commonly trained on, and the names that mean the same thing."""

from __future__ import annotations

import re
from pathlib import Path

from stormproof.core.errors import ModelError, UnknownName
from stormproof.core.files import locate, read_text
from stormproof.datasets import ade20k, bdd, camvid, cityscapes, kitti, voc

# COCO numbers its 80 classes 1 to 90; these numbers are not used.
_COCO_GAPS = frozenset({12, 26, 29, 30, 45, 66, 68, 69, 71, 83})

COCO = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow",
    "elephant", "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee",
    "skis", "snowboard", "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard",
    "tennis racket", "bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple",
    "sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch",
    "potted plant", "bed", "dining table", "toilet", "tv", "laptop", "mouse", "remote", "keyboard",
    "cell phone", "microwave", "oven", "toaster", "sink", "refrigerator", "book", "clock", "vase",
    "scissors", "teddy bear", "hair drier", "toothbrush",
)  # fmt: skip
COCO_IDS = tuple(number for number in range(1, 91) if number not in _COCO_GAPS)
_BY_ID = dict(zip(COCO_IDS, COCO, strict=True))

VOCABULARIES: dict[str, tuple[str, ...]] = {
    "coco80": COCO,
    # By COCO's own numbers less one; the names of numbers that COCO does not use are empty.
    "coco91": tuple(_BY_ID.get(number, "") for number in range(1, 91)),
    "voc20": voc.CLASSES,
    "voc21": ("background", *voc.CLASSES),
    "cityscapes19": cityscapes.SEMANTIC_CLASSES,
    "cityscapes8": cityscapes.CLASSES,
    "kitti8": kitti.CLASSES,
    "bdd10": bdd.CLASSES,
    "camvid11": camvid.CLASSES,
    "ade150": ade20k.CLASSES,
    # The model's labels are the dataset's own, in the dataset's order.
    "dataset": (),
}

# Names for the same thing. A name may occur once in the whole table.
ALIASES: tuple[tuple[str, ...], ...] = (
    ("airplane", "aeroplane", "aircraft", "plane"),
    ("motorcycle", "motorbike", "motor"),
    ("bicycle", "bike"),
    ("person", "pedestrian", "people", "human"),
    ("rider", "cyclist", "bicyclist"),
    ("train", "tram"),
    ("tv", "tv monitor", "tvmonitor", "television", "television receiver"),
    ("couch", "sofa"),
    ("dining table", "diningtable"),
    ("potted plant", "pottedplant"),
    ("cell phone", "mobile phone", "cellphone"),
    ("hair drier", "hair dryer"),
    ("donut", "doughnut"),
    ("refrigerator", "fridge", "icebox"),
    ("traffic light", "trafficlight", "traffic signal", "traffic lights"),
    ("traffic sign", "trafficsign", "signsymbol", "sign symbol", "sign"),
    ("vegetation", "tree"),
    ("sidewalk", "pavement"),
    ("pole", "column pole"),
    ("remote", "remote control"),
    ("ski", "skis"),
)

# The output for nothing, in the spellings that models use; never an object to be found.
NOTHING = frozenset({"", "?", "???", "n/a", "na", "none", "background", "void", "no object"})


def normalised(name: str) -> str:
    """A name as it is compared.

    >>> normalised("Person_sitting"), normalised("traffic-light")
    ('person sitting', 'traffic light')
    """
    return re.sub(r"[\s_\-]+", " ", name.strip().lower()).strip()


def resolve_classes(value: str | list[str] | None, near: Path | None) -> tuple[str, ...] | None:
    """Class names from a card: a vocabulary's name, a list, or a text file beside the card, one per line."""
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(str(name) for name in value)
    if value in VOCABULARIES:
        return VOCABULARIES[value]
    if "." not in value and "/" not in value:
        hint = f"Vocabularies: {', '.join(VOCABULARIES)}; or name a text file of one class per line."
        raise UnknownName("vocabulary", value, VOCABULARIES, hint)
    path = locate(value, near, error=ModelError)
    # An empty line is an output without a name, so it is kept.
    names = tuple(line.strip() for line in read_text(path, error=ModelError).splitlines())
    if not any(names):
        raise ModelError(f"{path} holds no class names; write one per line.")
    return names


def of_count(count: int) -> str | None:
    """The vocabulary that a number of classes points to.

    >>> of_count(80), of_count(7)
    ('coco80', None)
    """
    return {
        80: "coco80",
        90: "coco91",
        91: "coco91",
        20: "voc20",
        21: "voc21",
        19: "cityscapes19",
        150: "ade150",
    }.get(count)
