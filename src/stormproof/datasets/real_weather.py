"""Real weather and other real shifts: ACDC, Foggy Cityscapes and COCO-O.

Each is one dataset. An attribute of its images names their condition, fog or domain, so that `stormproof
score --by` scores these separately. BDD's weather is an attribute of `bdd`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stormproof.core.errors import DatasetError
from stormproof.core.files import first_folder, list_files, locate
from stormproof.core.sample import Truth
from stormproof.datasets.annotations import list_images, split_folder
from stormproof.datasets.cityscapes import (
    CLASSES,
    INSTANCE_IDS,
    LABEL_IDS,
    POLYGONS,
    SEMANTIC_CLASSES,
    TRAIN_IDS,
    CityscapesLabels,
    annotation_files,
)
from stormproof.datasets.coco import open_coco
from stormproof.datasets.dataset import READERS, FileDataset, Labels
from stormproof.datasets.groups import drop_singletons

CLEAR = "clear"  # the slice that a real shift is compared with, where the same dataset has it
CONDITIONS = ("fog", "night", "rain", "snow")
DOMAINS = ("cartoon", "handmake", "painting", "sketch", "tattoo", "weather")
_GOPRO = re.compile(r"G(OPR|P\d\d)(?P<recording>\d{4})", re.ASCII)
_BETA = re.compile(r"(?P<frame>.+)_leftImg8bit_foggy_beta_(?P<beta>[0-9.]+)")


@READERS.declare("acdc")
def open_acdc(main: str, *, split: str = "val") -> FileDataset:
    """ACDC (Sakaridis et al. 2021): `rgb_anon/CONDITION/SPLIT` with label maps in `gt/CONDITION/SPLIT`.

    The attribute `condition` is fog, night, rain or snow. Reference images of the same places (`SPLIT_ref`)
    are `clear`, where they have label maps.
    """
    root = locate(main)
    images, truths = (first_folder([root / name], name) for name in ("rgb_anon", "gt"))
    frames: dict[str, tuple[Path, Path, str]] = {}
    for condition in CONDITIONS:
        for part, name in ((split, condition), (f"{split}_ref", CLEAR)):
            if (images / condition / part).is_dir():
                frames |= _acdc_frames(images / condition / part, truths / condition / part, name)
    if not frames:
        place = f"rgb_anon/{{{','.join(CONDITIONS)}}}/{split}"
        raise DatasetError(root, f"has no labelled images in {place}.")
    groups = drop_singletons({name: _recording(name) for name in frames})
    return _street(root, f"acdc-{split}", frames, "condition", groups, objects=False)


def _recording(name: str) -> str:
    """The recording that a frame is from, with the references of the same places.

    A camera splits a recording into files: GOPR0475, then GP010475, GP020475 …

    >>> _recording("fog/GOPR0475_frame_000041"), _recording("clear/GP010475_frame_000310")
    ('recording 0475', 'recording 0475')
    """
    file = name.rpartition("/")[2].partition("_frame_")[0]
    match = _GOPRO.fullmatch(file)
    return f"recording {match['recording'] if match else file}"


def _acdc_frames(images: Path, truths: Path, name: str) -> dict[str, tuple[Path, Path, str]]:
    """Images with a label map, by id."""
    maps: dict[str, Path] = {}
    for kind in (TRAIN_IDS, LABEL_IDS):
        for path in list_files(truths, {".png"}) if truths.is_dir() else ():
            if path.name.endswith(kind):
                frame = path.name.removesuffix(kind).removesuffix("_gt_ref_").removesuffix("_gt_")
                maps.setdefault(frame, path)
    frames = {path.stem.removesuffix("_anon").rpartition("_rgb")[0]: path for path in list_images(images)}
    lacking = sorted(frames.keys() - maps.keys())
    if lacking and name != CLEAR:
        raise DatasetError(frames[lacking[0]], "has no label map.")
    return {f"{name}/{frame}": (frames[frame], maps[frame], name) for frame in sorted(frames.keys() & maps)}


@READERS.declare("foggy-cityscapes")
def open_foggy_cityscapes(main: str, *, split: str = "val", annotations: str = "gtFine") -> FileDataset:
    """Foggy Cityscapes (Sakaridis et al. 2018): `leftImg8bit_foggy` beside `gtFine`.

    The attribute `fog` is the attenuation β per metre: 0.005, 0.01 or 0.02, that is visibilities of about
    600, 300 and 150 m. The clear images of `leftImg8bit` belong to the dataset if that folder exists.
    """
    root = locate(main)
    truths = annotation_files(
        split_folder(first_folder([root / annotations], "annotations"), split), annotations
    )
    frames: dict[str, tuple[Path, Path, str]] = {}
    for path in list_images(first_folder([root / "leftImg8bit_foggy" / split], "foggy images")):
        match = _BETA.fullmatch(path.stem)
        if match is None or match["frame"] not in truths:
            wanted = "FRAME_leftImg8bit_foggy_beta_B.png with a frame that has an annotation"
            raise DatasetError(path, f"is not {wanted}.")
        frames[f"{match['frame']}_beta_{match['beta']}"] = (path, truths[match["frame"]], match["beta"])
    clear = root / "leftImg8bit" / split
    for path in list_images(clear) if clear.is_dir() else ():
        frame = path.stem.removesuffix("_leftImg8bit")
        if frame in truths:
            frames[frame] = (path, truths[frame], CLEAR)
    objects = all(truth.name.endswith((INSTANCE_IDS, POLYGONS)) for _, truth, _ in frames.values())
    # One scene in several fogs is a group.
    groups = drop_singletons({name: name.partition("_beta_")[0] for name in frames})
    return _street(root, f"foggy-cityscapes-{split}", frames, "fog", groups, objects=objects)


def _street(
    root: Path, name: str, frames: Mapping[str, tuple[Path, Path, str]], attribute: str,
    groups: Mapping[str, str], *, objects: bool,
) -> FileDataset:  # fmt: skip
    ids = tuple(sorted(frames))
    sources = tuple(frames[each][1] for each in ids)
    return FileDataset(
        name=name, root=root, ids=ids, images=tuple(frames[each][0] for each in ids),
        labels=CityscapesLabels(sources), sources=tuple(dict.fromkeys(sources)),
        classes=CLASSES if objects else (), semantic_classes=SEMANTIC_CLASSES,
        attributes={attribute: {each: frames[each][2] for each in ids}}, groups=groups,
    )  # fmt: skip


@READERS.declare("coco-o")
def open_coco_o(main: str, *, masks: bool = False) -> FileDataset:
    """COCO-O (Mao et al. 2023): `DOMAIN/annotations/instances_val2017.json` with `DOMAIN/val2017`.

    The attribute `domain` is cartoon, handmake, painting, sketch, tattoo or weather.
    """
    root = locate(main)
    parts = {
        domain: open_coco(str(path), images=str(root / domain / "val2017"), masks=masks)
        for domain in DOMAINS
        if (path := root / domain / "annotations" / "instances_val2017.json").is_file()
    }
    if not parts:
        wanted = "DOMAIN/annotations/instances_val2017.json"
        raise DatasetError(root, f"has no {wanted} for any of {', '.join(DOMAINS)}.")
    first = next(iter(parts.values()))
    for domain, part in parts.items():
        if part.classes != first.classes:
            raise DatasetError(root / domain, f"has other classes than {root / next(iter(parts))}.")
    owners = {f"{domain}/{name}": domain for domain, part in parts.items() for name in part.ids}
    joined = [(part.labels, k) for part in parts.values() for k in range(len(part))]
    return FileDataset(
        name="coco-o", root=root, ids=tuple(owners),
        images=tuple(image for part in parts.values() for image in part.images), labels=JoinedLabels(joined),
        sources=tuple(source for part in parts.values() for source in part.sources),
        classes=first.classes, category_ids=first.category_ids, variant=first.variant,
        attributes={"domain": owners},
    )  # fmt: skip


@dataclass(frozen=True)
class JoinedLabels:
    """The labels of several datasets as one: for each image, whose labels it has, and its place there."""

    places: Sequence[tuple[Labels, int]]

    def truth(self, index: int) -> Truth:
        labels, place = self.places[index]
        return labels.truth(place)

    def size(self, index: int) -> tuple[int, int] | None:
        labels, place = self.places[index]
        return labels.size(place)
