"""The papers' tables as submissions: cited, marked as published, with means of their own cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import Any

from stormproof.core.condition import Condition
from stormproof.corruptions.suites import SUITES
from stormproof.metrics.metric import measures
from stormproof.metrics.published import GridKey, PublishedRow, published
from stormproof.report.leaderboard.submission import (
    Submission,
    SubmittedDataset,
    SubmittedModel,
    Task,
    derive,
)

_TASKS: Mapping[str, Task] = {"bbox": "detection", "segm": "instance segmentation"}
_MEASURES = {"bbox": "AP", "segm": "mask AP"}
_FAMILIES = {
    "faster_rcnn": "Faster",
    "mask_rcnn": "Mask",
    "cascade_rcnn": "Cascade",
    "cascade_mask_rcnn": "Cascade Mask",
    "retinanet": "RetinaNet",
    "htc": "HTC",
}
_NAME = re.compile(
    r"(?P<family>cascade_mask_rcnn|cascade_rcnn|faster_rcnn|mask_rcnn|retinanet|htc)_(?P<dcn>dconv_c3-c5_)?.*?"
    r"(?P<backbone>r50|r101|x101_32x4d|x101_64x4d)_fpn_\w*?(?P<data>_(s|[a-z]+s)?(coco|city|voc0712))?"
)
# The authors' file of the deformable x101 is named 32x4d, and its row in Table 5 64x4d.
_BACKBONES = {"faster_rcnn_dconv_c3-c5_x101_32x4d_fpn_1x": "x101-64x4d-dcn"}
_PRINTED = {"P": "clean_p", "mPC": "mpc", "rPC": "rpc_percent"}
_NOT_COMPUTED = 0.1  # points; a printed number further from its own grid gets a note


def published_submissions() -> Iterator[Submission]:
    """Every entry of the papers' headline tables."""
    yield from _michaelis()
    yield from _kamann()
    yield from _liu()
    yield from _pezzementi()


def _michaelis() -> Iterator[Submission]:
    paper = published("michaelis")
    suite = tuple(map(str, SUITES["imagenet-c"].conditions))
    made: dict[tuple[str, ...], list[Submission]] = {}
    for dataset, model, task in dict.fromkeys((k.dataset, k.model, k.task) for k in paper.grids):
        metric = "AP50" if dataset == "pascal_voc" else "AP"
        grid = paper.grids[GridKey(dataset, model, task, metric)]
        measure = "VOC07 AP50" if dataset == "pascal_voc" else _MEASURES[task]
        cells = {text: grid.scores[Condition.parse(text)] for text in ("clean", *suite)}
        tags = model_tags(model)
        numbers = _of_grid(measure, cells, suite)
        entry = _entry("michaelis", model, dataset, _TASKS[task], measure, numbers, tags=tags)
        made.setdefault((dataset, task, *tags.values()), []).append(entry)
    for alike in made.values():
        yield from _with_notes(alike)


def model_tags(model: str) -> dict[str, str]:
    """What the authors' file name says about a network.

    >>> model_tags("faster_rcnn_r50_fpn_1x_cocoscoco")
    {'framework': 'Faster', 'backbone': 'r50', 'neck': 'fpn', 'training data': 'combined'}
    """
    named = _NAME.fullmatch(model)
    if named is None:
        return {}
    backbone = named["backbone"].replace("_", "-") + (
        "-dcn" if named["dcn"] and named["family"] != "htc" else ""
    )
    data = re.sub(r"coco$|city$|voc0712$", "", named["data"] or "").strip("_")
    training = "standard" if not data else "stylized" if data == "s" else "combined"
    return {
        "framework": _FAMILIES[named["family"]],
        "backbone": _BACKBONES.get(model, backbone),
        "neck": "fpn",
        "training data": training,
    }


def _with_notes(alike: Sequence[Submission]) -> Iterator[Submission]:
    """Networks with one description; of several, the one nearest to the printed row is the paper's."""
    row = _find_row(alike[0])
    paper = min(alike, key=lambda e: max(_gaps(e, row).values())) if row else None
    for entry in alike:
        gaps = _gaps(entry, row) if row and entry is paper else {}
        notes = [
            f"The paper prints {name} {row[field]}; its own grid gives {100 * getattr(entry, name):.2f}."
            for name, field in _PRINTED.items()
            if row and gaps.get(name, 0) > _NOT_COMPUTED
        ]
        yield entry.model_copy(update={"note": " ".join(notes)})


def _find_row(entry: Submission) -> PublishedRow | None:
    """The row of the paper's tables that describes a network."""
    tables, tags = published("michaelis").tables, entry.model.tags
    task = "instance" if entry.task == "instance segmentation" else "detection"
    if tags["training data"] == "standard":
        wanted: tuple[str, ...] = (task, entry.dataset.name, tags["framework"], tags["backbone"])
        rows = [r for r in tables["models"] if (r["task"], r["dataset"], r["model"], r["backbone"]) == wanted]
    else:
        family = "Mask" if task == "instance" else "Faster"
        wanted = (task, entry.dataset.name, tags["training data"])
        rows = [
            r
            for r in tables["stylized_training"]
            if (r["task"], r["dataset"], r["train_data"]) == wanted and tags["framework"] == family
        ]
    return rows[0] if rows else None


def _gaps(entry: Submission, row: PublishedRow) -> dict[str, float]:
    """How far the paper's numbers are from those of the grid, in points."""
    return {
        name: abs(100 * getattr(entry, name) - float(row[field] or 0)) for name, field in _PRINTED.items()
    }


def _kamann() -> Iterator[Submission]:
    names = {
        "cityscapes": "cityscapes",
        "ablation_xception71": "cityscapes",
        "pascal_voc": "pascal_voc",
        "ade20k": "ade20k",
    }
    seen = set()
    for table, rows in published("kamann").tables.items():
        for row in rows:
            model = str(row["architecture"])
            if (model, names[table]) in seen:
                continue  # the ablation's own reference is a row of the first table
            seen.add((model, names[table]))
            tags = {"backbone": model} if table != "ablation_xception71" else {"backbone": "Xception-71"}
            note = "Means over severities, as printed; noise counts with severities 1 to 3."
            yield _averages("kamann", model, names[table], "semantic segmentation", "mIoU", row, tags, note)


def _liu() -> Iterator[Submission]:
    for row in published("liu").tables["ce"]:
        if row["detector"] != "Average":
            tags = {"category": str(row["category"])}
            note = "Errors: lower is better. Means over severities, as printed."
            yield _averages("liu", str(row["detector"]), "coco", "detection", "E", row, tags, note)


def _pezzementi() -> Iterator[Submission]:
    rows = published("pezzementi").tables["adr"]
    for system in [key for key in rows[0] if key not in ("mutator", "parameters")]:
        cells = {mutation(str(row["mutator"]), str(row["parameters"] or "")): row[system] for row in rows}
        suite = tuple(text for text in cells if text != "clean")
        grid = {text: float(value) for text, value in cells.items() if isinstance(value, float)}
        dataset = "nrec agricultural person detection"
        yield _entry("pezzementi", system, dataset, "person detection", "ADR", _of_grid("ADR", grid, suite))


_MUTATORS = {
    "Defocus": ("defocus", ("focus", "kappa")),
    "Gaussian Blur": ("gaussian_blur", ("sigma",)),
    "Alpha Blend": ("alpha_blend", ("alpha",)),
    "JPEG Compression": ("jpeg_compression", ("quality",)),
    "Brightness": ("brightness_shift", ("factor",)),
    "Salt and Pepper": ("salt_and_pepper", ("amount",)),
    "Additive": ("additive_noise", ("zeta_w", "zeta_u", "psi")),
}


def mutation(mutator: str, parameters: str) -> str:
    """A row of Table IV as a condition.

    >>> mutation("Defocus", "u_f 10; kappa 2.8"), mutation("Salt and Pepper", "1% of pixels")
    ('defocus[focus=10,kappa=2.8]', 'salt_and_pepper[amount=0.01]')
    """
    if mutator == "Baseline":
        return "clean"
    if mutator.startswith("Drop Channel"):
        return str(Condition.of("channel_drop", params={"channel": mutator.split()[-1]}))
    numbers = [float(n) for n in re.findall(r"\d+(?:\.\d+)?", parameters)]
    if mutator == "Haze":
        return str(Condition.of("haze", params={"beta": numbers[-1]}))
    name, keys = _MUTATORS[mutator]
    if "%" in parameters:
        numbers = [n / 100 for n in numbers]
    return str(Condition.of(name, params=dict(zip(keys, numbers, strict=True))))


def _averages(
    paper: str, model: str, dataset: str, task: Task, measure: str, row: PublishedRow,
    tags: dict[str, str], note: str,
) -> Submission:  # fmt: skip
    """An entry of a table that prints means over severities, in per cent."""
    words = {"architecture", "category", "detector"}
    means = {name: v / 100 for name, v in row.items() if name not in words and isinstance(v, float)}
    clean = means.pop("clean")
    mean = fmean(means.values())
    relative = mean / clean if measures()[measure].higher and mean and clean else None
    numbers = {"P": clean, "mPC": mean, "rPC": relative, "by_corruption": means}
    return _entry(paper, model, dataset, task, measure, numbers, tags=tags, note=note)


def _of_grid(measure: str, cells: Mapping[str, float], suite: tuple[str, ...]) -> dict[str, Any]:
    """What an entry holds of a grid over the conditions of `suite`."""
    return {**derive(measure, cells, suite, None), "grid": dict(cells), "conditions": suite}


def _entry(
    paper: str, model: str, dataset: str, task: Task, measure: str, numbers: Mapping[str, Any], *,
    tags: Mapping[str, str] = MappingProxyType({}), note: str = "",
) -> Submission:  # fmt: skip
    """What a paper printed of one model."""
    return Submission(
        origin="published",
        task=task,
        model=SubmittedModel(name=model, tags=dict(tags)),
        dataset=SubmittedDataset(name=dataset),
        measure=measure,
        citation=published(paper).citation,
        note=note,
        provenance={"paper": paper, "source": "as printed"},
        **numbers,
    )
