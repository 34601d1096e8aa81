"""Layouts for label maps: Cityscapes, CamVid; and images without any truth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stormproof.core.sample import Sample
from stormproof.core.spec import Spec
from stormproof.datasets.cityscapes import BY_NAME
from stormproof.tools.derived.layout import Layout, Target, nothing, semantic_labels
from stormproof.world.writers.format import Record

CITY = "stormproof"
VOID = 255


def _lacks_cityscapes(target: Target) -> str:
    strangers = [name for name in (*target.semantic_classes, *target.classes) if name not in BY_NAME]
    if strangers:
        return f"{strangers[0]!r} is no class of Cityscapes"
    return _lacks_maps(target)


def _write_cityscapes(target: Target, name: str, sample: Sample) -> tuple[Path, Record]:
    """Label ids and instance ids; objects are drawn over the map, crowds without a number."""
    frame = f"{CITY}_{name.replace('_', '-')}_000000"
    path = target.image(f"leftImg8bit/{target.split}/{CITY}", f"{frame}_leftImg8bit", sample.image)
    table = np.zeros(256, np.uint16)
    table[: len(target.semantic_classes)] = [BY_NAME[n].id for n in target.semantic_classes]
    ids = table[semantic_labels(sample, VOID)]
    objects = sample.truth.instances
    if objects is not None and objects.masks is not None:
        seen: dict[int, int] = {}
        for k, mask in enumerate(objects.masks):
            label = BY_NAME[target.classes[int(objects.labels[k])]]
            number = label.id
            if label.has_instances and not (objects.crowd[k] or objects.ignore[k]):
                number = label.id * 1000 + seen.setdefault(label.id, 0)
                seen[label.id] += 1
            ids[mask.to_mask()] = number
    folder = f"gtFine/{target.split}/{CITY}"
    target.numbers(folder, f"{frame}_gtFine_instanceIds", ids)
    labels = np.where(ids >= 1000, ids // 1000, ids).astype(np.uint8)
    target.numbers(folder, f"{frame}_gtFine_labelIds", labels)
    return path, {}


def _write_camvid(target: Target, name: str, sample: Sample) -> tuple[Path, Record]:
    path = target.image("images", name, sample.image)
    target.numbers("labels", name, semantic_labels(sample, VOID))
    return path, {}


def _finish_camvid(target: Target, records: Sequence[Record]) -> None:
    names = {str(k): name for k, name in enumerate(target.semantic_classes)}
    content = {"classes": names, "ignore_index": VOID}
    target.file(".", "classes.json").write_text(json.dumps(content, indent=1))


def _write_image(target: Target, name: str, sample: Sample) -> tuple[Path, Record]:
    return target.image("images", name, sample.image), {}


def _spec_cityscapes(target: Target) -> Spec:
    return Spec("cityscapes", str(target.root), {"split": target.split})


def _lacks_maps(target: Target) -> str:
    return "" if target.semantic_classes else "the dataset has no semantic maps"


CITYSCAPES = Layout("cityscapes", _write_cityscapes, nothing, _spec_cityscapes, _lacks_cityscapes)
CAMVID = Layout("camvid", _write_camvid, _finish_camvid, lambda t: Spec("camvid", str(t.root)), _lacks_maps)
IMAGES = Layout("images", _write_image, nothing, lambda t: Spec("images", f"{t.root}/images"), lambda t: "")
