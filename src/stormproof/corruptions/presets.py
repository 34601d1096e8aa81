"""The papers' benchmarks as data: a split of a dataset, a suite and a metric."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from stormproof.core.condition import CLEAN, SEVERITIES, Condition
from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.corruptions import CORRUPTIONS, SUITES
from stormproof.corruptions.corruption import every_severity
from stormproof.corruptions.grammar import read_conditions
from stormproof.corruptions.suites import KAMANN, KAMANN_19, KAMANN_NOISE_SEVERITIES, ONE_DATASET_ONLY


@dataclass(frozen=True, slots=True)
class Place:
    """One layout of a dataset on disk: files that must exist below the root, and the spec that opens it."""

    marks: tuple[str, ...]
    spec: str


@dataclass(frozen=True, slots=True)
class Preset:
    """A paper's benchmark. `metric` is the number that its tables print first.

    `noise_severities` are the severities of noise that its means cover; every severity is run. `data` is the
    spec of a dataset that comes with Stormproof; other benchmarks look for theirs below a root folder.
    """

    name: str
    cite: str
    doc: str
    places: tuple[Place, ...]
    suites: tuple[str, ...]
    metric: str
    corruptions: tuple[str, ...] = ()  # for papers whose list is not a suite
    needs: str = ""  # what Stormproof lacks to run it
    noise_severities: tuple[int, ...] = SEVERITIES
    params: str = ""  # of all its conditions, in brackets
    data: str = ""

    def locate(self, root: Path | None) -> str:
        """The spec of the dataset: its own, or the one below `root`."""
        if root is None:
            if not self.data:
                raise InvalidOption(f"The benchmark {self.name} needs --root FOLDER, where {self.doc} is.")
            return self.data
        if self.data:
            raise InvalidOption(f"The benchmark {self.name} brings its own data: leave out --root.")
        if not root.is_dir():
            raise InvalidOption(f"{root} is not a folder; {self.name} needs the root folder of {self.doc}.")
        for place in self.places:
            if all((root / mark).exists() for mark in place.marks):
                return place.spec.format(root=str(root).replace(",", "\\,"))
        looked = " or ".join(", ".join(place.marks) for place in self.places)
        raise InvalidOption(f"{root} does not look like {self.doc}: it has no {looked}.")

    def conditions(self) -> tuple[Condition, ...]:
        """Clean and every condition the paper ran."""
        if self.lacking:
            raise InvalidOption(f"The benchmark {self.name} cannot run: it needs {self.lacking}.")
        named = read_conditions(f"{suite}{self.params}" for suite in self.suites)
        listed = (condition for name in self.corruptions for condition in every_severity(name))
        return tuple(dict.fromkeys((CLEAN, *named, *listed)))

    @property
    def lacking(self) -> str:
        """What this version lacks to run it, in words; empty if it can run."""
        suites = [f"the suite {name!r}" for name in self.suites if name not in SUITES]
        recipes = [f"the corruption {name!r}" for name in self.corruptions if name not in CORRUPTIONS]
        missing = suites + recipes
        return self.needs or (f"{', '.join(missing)}, not in this version" if missing else "")


_COCO = tuple(
    Place((f"{folder}instances_val2017.json", images),
          f"coco:{{root}}/{folder}instances_val2017.json,images={{root}}/{images}")
    for folder in ("annotations/", "") for images in ("val2017", "images/val2017")
)  # fmt: skip
_CITYSCAPES = (Place(("leftImg8bit/val", "gtFine/val"), "cityscapes:{root},split=val"),)
_CITYSCAPES_DEPTH = (
    Place(("leftImg8bit/val", "gtFine/val", "disparity/val", "camera/val"),
          "cityscapes:{root},split=val,disparity={root}/disparity/val,calib={root}/camera/val"),
)  # fmt: skip
_BDD = tuple(
    Place((labels, images), f"bdd:{{root}}/{labels},images={{root}}/{images}")
    for labels in ("labels/det_20/det_val.json", "labels/bdd100k_labels_images_val.json", "det_val.json")
    for images in ("images/100k/val", "images/val")
)
_VOC07 = tuple(
    Place((f"{inner}ImageSets/Main/test.txt",), f"voc:{{root}}/{inner or '.'},split=test")
    for inner in ("", "VOC2007/", "VOCdevkit/VOC2007/")
)
_VOC12 = tuple(
    Place((f"{inner}ImageSets/Segmentation/val.txt",), f"voc-seg:{{root}}/{inner or '.'},split=val")
    for inner in ("", "VOC2012/", "VOCdevkit/VOC2012/")
)
_VOC12 += (Place(("JPEGImages", "SegmentationClass"), "voc-seg:{root}"),)  # a subset, without lists
_CAMVID = (
    Place(("images", "labels"), "camvid:{root}"),
    *(Place((split, f"{split}annot"), f"camvid:{{root}},split={split}") for split in ("test", "val")),
)
_ADE = tuple(
    Place((f"{inner}images/validation", f"{inner}annotations/validation"),
          f"ade20k:{{root}}/{inner or '.'},split=validation")
    for inner in ("", "ADEChallengeData2016/")
)  # fmt: skip
# A dataset with people and depth, recognised by its layout: NREC's, KITTI's, or COCO's labels.
_WITH_DEPTH = (
    *(Place((f"{split}/collected", "depth"), f"nrec:{{root}},split={split},depth={{root}}/depth")
      for split in ("test", "val")),
    Place(("image_2", "label_2", "depth"), "kitti:{root},depth={root}/depth"),
    *(Place((file, "images", "depth"), f"coco:{{root}}/{file},images={{root}}/images,depth={{root}}/depth")
      for file in ("annotations.json", "instances.json", "annotations/instances.json")),
)  # fmt: skip
_KAMANN_18 = tuple(name for name in KAMANN_19 if name not in ONE_DATASET_ONLY)


def _kamann(name: str, doc: str, places: tuple[Place, ...], corruptions: tuple[str, ...]) -> Preset:
    few = KAMANN_NOISE_SEVERITIES
    return Preset(name, "kamann2020", doc, places, (), "mIoU", corruptions, noise_severities=few)


def _street(name: str, cite: str, suites: tuple[str, ...], metric: str) -> Preset:
    return Preset(name, cite, "500 scenes of the built-in street", (), suites, metric, data="world:test")


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("coco-c", "michaelis2019", "COCO 2017 val", _COCO, ("imagenet-c",), "AP"),
        Preset("pascal-c", "michaelis2019", "PASCAL VOC 2007 test", _VOC07, ("imagenet-c",), "VOC07 AP50"),
        Preset("cityscapes-c", "michaelis2019", "Cityscapes val", _CITYSCAPES, ("imagenet-c",), "AP"),
        _kamann("cityscapes-seg-c", "Cityscapes val", _CITYSCAPES, KAMANN_19),
        _kamann("voc2012-seg-c", "PASCAL VOC 2012 val", _VOC12, _KAMANN_18),
        _kamann("ade20k-c", "ADE20K validation", _ADE, _KAMANN_18),
        _kamann("camvid-seg-c", "CamVid", _CAMVID, KAMANN_19),
        Preset("coco-camera", "liu2024", "COCO 2017 val", _COCO, ("camera",), "E"),
        Preset("bdd100k-camera", "liu2024", "BDD100K val", _BDD, ("camera",), "E"),
        Preset("stylized-coco", "theodoridis2022", "COCO 2017 val", _COCO, ("object-centric",),
               "mask AP"),
        Preset("foggy-cityscapes", "sakaridis2018", "Cityscapes val with disparity/ and camera/",
               _CITYSCAPES_DEPTH, ("foggy-cityscapes",), "AP"),
        Preset("person-mutators", "pezzementi2018", "COCO 2017 val", _COCO, ("mutators",), "ADR"),
        Preset("person-contextual", "pezzementi2018", "a dataset with people and depth/", _WITH_DEPTH,
               ("mutators", "contextual"), "ADR"),
        _street("street-c", "michaelis2019", ("imagenet-c",), "AP"),
        replace(_street("street-seg-c", "kamann2020", ("kamann",), "mIoU"),
                noise_severities=KAMANN_NOISE_SEVERITIES),
        _street("street-camera", "liu2024", ("camera",), "E"),
        _street("street-style", "theodoridis2022", ("object-centric",), "AP"),
        _street("street-people", "pezzementi2018", ("mutators", "contextual"), "ADR"),
    )
}  # fmt: skip


def find_preset(name: str) -> Preset:
    """The benchmark of that name; `stylized-coco[styles=looks]` replaces parameters of its conditions."""
    name, bracket, params = name.partition("[")
    try:
        return replace(PRESETS[name], params=bracket + params)
    except KeyError:
        raise UnknownName("benchmark", name, PRESETS, f"Benchmarks: {', '.join(PRESETS)}.") from None


def covered_by_mean(
    conditions: Iterable[Condition], *, benchmark: str | None = None, suite: str | None = None
) -> tuple[Condition, ...]:
    """The corrupted conditions that a mean over `conditions` covers.

    The benchmark or suite decides which severities of noise count. Without either, all of them do, unless
    these are the conditions of *kamann*.

    >>> len(SUITES["kamann"]), len(covered_by_mean(SUITES["kamann"]))
    (93, 83)
    """
    corrupted = tuple(dict.fromkeys(condition for condition in conditions if not condition.is_clean))
    named = PRESETS.get(benchmark or "") or SUITES.get(suite or "")
    if named is None and _is_kamann({*corrupted}):
        named = SUITES["kamann"]
    severities = SEVERITIES if named is None else named.noise_severities
    return tuple(
        condition
        for condition in corrupted
        if condition.corruption not in KAMANN["noise"]
        or condition.whole_severity is None
        or condition.whole_severity in severities
    )


def _is_kamann(conditions: set[Condition]) -> bool:
    """Whether these are the conditions of *kamann*; those that only some datasets have may be absent."""
    if {condition.corruption for condition in conditions} | ONE_DATASET_ONLY != {*KAMANN_19}:
        return False
    missing = {*SUITES["kamann"]} ^ conditions
    return {condition.corruption for condition in missing} <= ONE_DATASET_ONLY
