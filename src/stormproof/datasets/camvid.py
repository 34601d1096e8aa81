"""CamVid street scenes: 11 classes and void, in the SegNet layout or in folders `images` and `labels`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from stormproof.core.errors import DatasetError
from stormproof.core.files import first_folder, list_files, locate, read_json
from stormproof.core.sample import Sample
from stormproof.core.spec import Spec
from stormproof.datasets.annotations import (
    IGNORE,
    by_stem,
    class_names,
    identity_table,
    map_dataset,
    split_name,
    unknown_split,
)
from stormproof.datasets.dataset import READERS, FileDataset
from stormproof.datasets.groups import before_underscore
from stormproof.datasets.writing import (
    WRITERS,
    Destination,
    Record,
    Writer,
    drops_objects,
    lacks_maps,
    semantic_labels,
)

CLASSES = (
    "sky", "building", "pole", "road", "pavement", "tree", "signsymbol", "fence", "car", "pedestrian",
    "bicyclist",
)  # fmt: skip
VOID = 11
_LABEL_ENDINGS = ("_L", "_P")


@READERS.declare("camvid")
def open_camvid(main: str, *, split: str | None = None) -> FileDataset:
    """Open CamVid: `images` and `labels`, or `test` and `testannot` (split=test, train or val).

    A `classes.json` in the folder replaces the classes: `{"classes": {"0": "sky", …}, "ignore_index": 11}`.
    """
    root = locate(main)
    images, annotations = _folders(root, split)
    names, void = _classes(root)
    maps = by_stem(list_files(annotations, {".png"}), _LABEL_ENDINGS)
    table = identity_table(names, void, IGNORE)
    made = map_dataset(split_name(root, split), root, images, maps, table, names)
    return replace(made, groups=before_underscore(made.ids))  # 0001TP_008550 is a frame of recording 0001TP


def _folders(root: Path, split: str | None) -> tuple[Path, Path]:
    splits = {entry.name.removesuffix("annot") for entry in root.glob("*annot") if entry.is_dir()}
    if split is not None:
        if split not in splits:
            raise unknown_split(split, splits, root)
        return first_folder([root / split], "images"), root / f"{split}annot"
    if splits:
        raise DatasetError(root, f"is in the SegNet layout; choose a split: {', '.join(sorted(splits))}.")
    return first_folder([root / "images"], "images"), first_folder([root / "labels"], "label maps")


def _classes(root: Path) -> tuple[tuple[str, ...], int]:
    """Class names and the void value."""
    path = root / "classes.json"
    if not path.is_file():
        return CLASSES, VOID
    content = read_json(path)
    try:
        void = int(content["ignore_index"])
        numbered = sorted(
            (int(number), name) for number, name in content["classes"].items() if int(number) != void
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DatasetError(
            path, f"must contain 'classes' (names by number) and 'ignore_index': {error}."
        ) from None
    if [number for number, _ in numbered] != list(range(len(numbered))):
        raise DatasetError(
            path, f"class numbers must run 0, 1, 2 …, not {[number for number, _ in numbered]}."
        )
    return class_names((name for _, name in numbered), path), void


def _void(destination: Destination) -> int:
    """The value of unlabelled pixels: CamVid's own for its own classes, else 255."""
    return VOID if destination.semantic_classes == CLASSES else IGNORE


def _write(destination: Destination, name: str, sample: Sample) -> tuple[Path, Record]:
    path = destination.write_image("images", name, sample.image)
    destination.write_map("labels", name, semantic_labels(sample, _void(destination)))
    return path, {}


def _finish(destination: Destination, records: Sequence[Record]) -> None:
    names = {str(k): name for k, name in enumerate(destination.semantic_classes)}
    void = _void(destination)
    content = {"classes": {**names, str(void): "unlabelled"}, "ignore_index": void}
    destination.write_text(".", "classes.json", json.dumps(content, indent=1, ensure_ascii=False))


def _spec(destination: Destination) -> Spec:
    return Spec("camvid", str(destination.root))


WRITERS.add("camvid", Writer(_write, _spec, lacks_maps, drops_objects, _finish), module=__name__)
