"""Class names: common vocabularies, synonyms, and matching a model's classes with a dataset's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.errors import InvalidOption, ModelError, UnknownName, counted, first_few
from stormproof.core.files import locate, read_text
from stormproof.core.sample import SEGMENTS, Bools, Ints, Prediction, panoptic_map
from stormproof.core.text import compose
from stormproof.datasets import ade20k, bdd, camvid, cityscapes, kitti, voc

NO_CLASS = -1
NO_PIXEL = 255  # the value in a semantic map where the model predicts a class that the dataset lacks

# COCO numbers its 80 classes from 1 to 90 and leaves these numbers out.
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
    # By COCO's own number minus one; the numbers that COCO leaves out have empty names.
    "coco91": tuple(_BY_ID.get(number, "") for number in range(1, 91)),
    "voc20": voc.CLASSES,
    "voc21": ("background", *voc.CLASSES),
    "cityscapes19": cityscapes.SEMANTIC_CLASSES,
    "cityscapes8": cityscapes.CLASSES,
    "kitti8": kitti.CLASSES,
    "bdd10": bdd.CLASSES,
    "camvid11": camvid.CLASSES,
    "ade150": ade20k.CLASSES,
    # The model's labels index the dataset's classes.
    "dataset": (),
}

# Synonyms. A name may occur only once in the whole table.
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

# Names that models give to the output that means "no object".
BACKGROUND = frozenset({"", "?", "???", "n/a", "na", "none", "background", "void", "no object"})


def normalise(name: str) -> str:
    """A name in the form used for comparison: lower case, words separated by single spaces.

    >>> normalise("Person_sitting"), normalise("traffic-light")
    ('person sitting', 'traffic light')
    """
    return re.sub(r"[\s_\-]+", " ", compose(name).lower()).strip()


_MEANING = {normalise(name): normalise(group[0]) for group in ALIASES for name in group}


def canonical(name: str) -> str:
    """The first of a group of synonyms; words may be run together, as in VOC."""
    key = normalise(name)
    return _MEANING.get(key, _MEANING.get(key.replace(" ", ""), key))


def is_background(name: str) -> bool:
    return normalise(name) in BACKGROUND


def resolve_classes(value: str | list[str] | None, near: Path | None) -> tuple[str, ...] | None:
    """Class names from a vocabulary's name, a list, a text file (in the folder `near`), one per line, or the
    name of the only class.

    >>> resolve_classes("[background, person]", None), resolve_classes("face", None)
    (('background', 'person'), ('face',))
    """
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(str(name) for name in value)
    if value in VOCABULARIES:
        return VOCABULARIES[value]
    if value.startswith("[") and value.endswith("]"):  # an empty name is an output without a name
        names = tuple(name.strip() for name in value[1:-1].split(","))
        if not any(names):
            fix = "write classes=[background,person], for example"
            raise ModelError(f"classes={value} names no class; {fix}.")
        return names
    if "." not in value and "/" not in value:
        _refuse_near_vocabulary(value)
        return (value,)
    path = locate(value, near, error=ModelError)
    # An empty line is kept: it is an output without a name.
    names = tuple(line.strip() for line in read_text(path, error=ModelError).splitlines())
    if not any(names):
        raise ModelError(f"{path} contains no class names; write one per line.")
    return names


def _refuse_near_vocabulary(name: str) -> None:
    """Refuse `coco` or `VOC21`, which mean a vocabulary and not a class of that name."""
    if re.search(r"\d$", name) or get_close_matches(name.lower(), VOCABULARIES, cutoff=0.6):
        hint = (
            f"Vocabularies: {', '.join(VOCABULARIES)}; or name a text file with one class per line, or the "
            f"classes themselves: classes=[{name}]."
        )
        raise UnknownName("vocabulary", name, VOCABULARIES, hint)


@dataclass(frozen=True, slots=True)
class ClassMatch:
    """The model's classes and the dataset's classes they correspond to.

    `labels[i]` is the dataset's label for the model's label i, or −1. Predictions of `unmatched_model`
    classes, which the dataset lacks, are dropped. `unmatched_dataset` classes, which the model does not know,
    are not scored unless the user asks for them.
    """

    model: tuple[str, ...]
    dataset: tuple[str, ...]
    labels: tuple[int, ...]

    @property
    def pairs(self) -> tuple[tuple[str, int], ...]:
        """Each of the model's names with the dataset's label."""
        return tuple(zip(self.model, self.labels, strict=True))

    @property
    def unmatched_model(self) -> tuple[str, ...]:
        return tuple(name for name, label in self.pairs if label == NO_CLASS and not is_background(name))

    @property
    def unmatched_dataset(self) -> tuple[str, ...]:
        known = {*self.labels}
        return tuple(n for i, n in enumerate(self.dataset) if i not in known and not is_background(n))

    def apply(self, prediction: Prediction, *, maps: ClassMatch | None = None) -> Prediction:
        """Translate a prediction to the dataset's labels; objects and segments of unmatched classes are
        dropped. `maps` is the match for semantic and panoptic maps, if they have other classes."""
        maps = maps or self
        labels, kept = self._translate(prediction.labels)
        masks = prediction.masks and tuple(compress(prediction.masks, kept))
        semantic = prediction.semantic
        if semantic is not None:
            semantic = maps._lookup(semantic.dtype.type)[semantic]
        panoptic = prediction.panoptic
        if panoptic is not None:
            panoptic = panoptic_map(panoptic, maps._segments(panoptic))
        return Prediction(
            prediction.boxes[kept],
            prediction.scores[kept],
            labels[kept],
            masks,
            semantic,
            prediction.sides[kept],
            panoptic=panoptic,
            data={name: values[kept] for name, values in prediction.data.items()},
        )

    def _translate(self, labels: Ints) -> tuple[Ints, Bools]:
        beyond = labels[(labels < 0) | (labels >= len(self.labels))]
        if beyond.size:
            raise InvalidOption(
                f"The model predicted label {beyond[0]}, but it names only "
                f"{counted(len(self.labels), 'class')}."
            )
        mapped = np.asarray(self.labels, np.int64)[labels] if len(labels) else labels
        return mapped, mapped != NO_CLASS

    def _segments(self, panoptic: npt.NDArray[np.int32]) -> dict[int, int]:
        """The dataset's class of each segment whose class it has."""
        numbers = [number for number in np.unique(panoptic).tolist() if number]
        labels, kept = self._translate(np.array(numbers, np.int64) // SEGMENTS - 1)
        known = zip(numbers, labels.tolist(), kept.tolist(), strict=True)
        return {number: label for number, label, keep in known if keep}

    def _lookup(self, kind: type[np.generic]) -> npt.NDArray[Any]:
        table: npt.NDArray[Any] = np.full(256 if kind is np.uint8 else 65536, NO_PIXEL, kind)
        known = np.asarray(self.labels[: len(table)])
        table[: len(known)] = np.where(known == NO_CLASS, NO_PIXEL, known)
        return table


# How names are compared, one after the other: a name that matches in one way is not tried in the next.
_WAYS: tuple[Callable[[str], str], ...] = (str, compose, normalise)


def match_classes(model: Sequence[str], dataset: Sequence[str]) -> ClassMatch:
    """Match classes by name: the very name first, then in another Unicode form, then in any case and with any
    spaces, hyphens and underscores, then a synonym.

    Spellings that would join two classes of the model, or two of the dataset, are refused; synonyms may. An
    empty `model` means that its labels index the dataset's classes.

    >>> match = match_classes(["background", "tvmonitor", "sofa"], ["couch", "tv", "bed"])
    >>> match.labels, match.unmatched_dataset
    ((-1, 1, 0), ('bed',))
    >>> match_classes(["w 1", "W-1"], ["W-1", "w 1"]).labels
    (1, 0)
    """
    if not model:
        return ClassMatch(tuple(dataset), tuple(dataset), tuple(range(len(dataset))))
    by_name = [_by_name(dataset, way) for way in _WAYS]
    meaning = {canonical(name): i for i, name in reversed([*enumerate(dataset)])}
    labels, spelled = [], dict[int, list[str]]()
    for name in model:
        label = _find_spelling(name, dataset, by_name) if name.strip() else NO_CLASS
        if label != NO_CLASS:
            spelled.setdefault(label, []).append(name)
        elif name.strip():
            label = meaning.get(canonical(name), NO_CLASS)
        labels.append(label)
    for label, names in spelled.items():
        if len({*names}) > 1 and not is_background(names[0]):
            raise _ambiguous("model", sorted({*names}), "dataset", dataset[label])
    return ClassMatch(tuple(model), tuple(dataset), tuple(labels))


def _by_name(names: Sequence[str], way: Callable[[str], str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(way(name), []).append(place)
    return places


def _find_spelling(name: str, dataset: Sequence[str], by_name: Sequence[Mapping[str, list[int]]]) -> int:
    """The dataset's class of that name, however spelled; −1 if there is none."""
    for way, places in zip(_WAYS, by_name, strict=True):
        same = places.get(way(name), [])
        if len({dataset[place] for place in same}) > 1 and not is_background(name):
            raise _ambiguous("dataset", sorted({dataset[place] for place in same}), "model", name)
        if same:
            return same[0]
    return NO_CLASS


def _ambiguous(side: str, names: Sequence[str], other: str, name: str) -> InvalidOption:
    """Two names of one side that are spelled like one of the other; escaped, since they may look the same."""
    joined = " and ".join(map(ascii, names[:3]))
    return InvalidOption(
        f"{joined} of the {side} are spelled like {name!a} of the {other}, but for case, spaces, hyphens or "
        "Unicode form, so it is not clear which is meant. Give the model the dataset's very names, e.g. with "
        "classes=FILE."
    )


def class_lines(match: ClassMatch) -> list[str]:
    """How the classes of a model and a dataset match, where not all names are the same.

    >>> class_lines(match_classes(["person"], ["person", "bed"]))
    ['1 of 2 classes of the dataset are scored: person. The model does not know: bed.']
    """
    known = [
        name for label, name in enumerate(match.dataset) if label in match.labels and not is_background(name)
    ]
    lacking, dropped = match.unmatched_dataset, match.unmatched_model
    lines = []
    if lacking:
        scored = f"{len(known)} of {len(known) + len(lacking)} classes of the dataset are scored"
        lines.append(f"{scored}: {first_few(known)}. The model does not know: {first_few(lacking)}.")
    renamed = [
        f"{name} is {match.dataset[label]}"
        for name, label in match.pairs
        if label != NO_CLASS and normalise(name) != normalise(match.dataset[label])
    ]
    if renamed and (lacking or dropped):
        lines.append(f"Under another name: {first_few(renamed)}.")
    if dropped:
        lines.append(f"Predictions of classes that the dataset lacks are dropped: {first_few(dropped)}.")
    return lines
