"""The papers' own numbers: baselines to compare with, and a test of our arithmetic.

They are facts, printed or released by the authors; cite the paper when you use them. Values are in the unit
in which they were published.
"""

from __future__ import annotations

import csv
import io
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple

from stormproof.core.errors import UnknownName
from stormproof.corruptions.suites import BENCHMARK_15
from stormproof.metrics.grid import Grid

PublishedRow = Mapping[str, str | float | None]


class GridKey(NamedTuple):
    """The key of a published grid: `task` is bbox or segm, `metric` a COCO number or AP50."""

    dataset: str
    model: str
    task: str
    metric: str


class Grids(Mapping[GridKey, Grid]):
    """Published grids by (dataset, model, task, metric); each is built when it is accessed."""

    def __init__(self, cells: Mapping[GridKey, list[tuple[str, int, float]]]) -> None:
        self._cells = cells

    def __getitem__(self, key: tuple[str, str, str, str]) -> Grid:
        if key not in self._cells:
            every = ("/".join(known) for known in self._cells)
            listed = "List them with list(published('michaelis').grids)."
            raise UnknownName("published grid", "/".join(key), every, listed)
        grid = Grid.from_rows(self._cells[GridKey(*key)])
        # The paper averages over the benchmark's 15 corruptions; its files also have 4 meant for validation.
        return grid.over(BENCHMARK_15) if {*BENCHMARK_15} <= {*grid.corruptions} else grid

    def __iter__(self) -> Iterator[GridKey]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)

    def __contains__(self, key: object) -> bool:
        return key in self._cells


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """One paper's numbers: `tables` of rows by column name, and `grids` if every cell was released."""

    name: str
    citation: str
    note: str
    tables: Mapping[str, tuple[PublishedRow, ...]]
    grids: Mapping[GridKey, Grid] = field(default_factory=lambda: Grids({}))


@dataclass(frozen=True, slots=True)
class _Source:
    citation: str
    note: str
    tables: tuple[str, ...]
    grid: str | None = None


_SOURCES: Mapping[str, _Source] = {
    "michaelis": _Source(
        "C. Michaelis, B. Mitzkus, R. Geirhos, E. Rusak, O. Bringmann, A. S. Ecker, M. Bethge, W. Brendel: "
        "Benchmarking Robustness in Object Detection: Autonomous Driving when Winter is Coming. "
        "arXiv:1907.07484, 2019.",
        "Grids as fractions, from the authors' robust-detection-benchmark repository (MIT licence): 27 model "
        "files, 19 corruptions, 5 severities. Tables 1 to 6 in percent: `models` (1, 3, 5, 6) and "
        "`stylized_training` (2, 4). The tables' plain COCO Faster R-CNN is faster_rcnn_r50_fpn_1x_coco, and "
        "their deformable x101-64x4d is the file named dconv_c3-c5_x101_32x4d.",
        ("models", "stylized_training"),
        "michaelis_grid.csv.xz",
    ),
    "kamann": _Source(
        "C. Kamann, C. Rother: Benchmarking the Robustness of Semantic Segmentation Models with Respect to "
        "Common Corruptions. International Journal of Computer Vision 129, 2021.",
        "mIoU in percent, averaged over severities (noise: the first three): Table 1 `cityscapes`, Table 2 "
        "`ablation_xception71`, Table 3 `pascal_voc` (its last row reordered), Table 4 `ade20k`.",
        ("cityscapes", "ablation_xception71", "pascal_voc", "ade20k"),
    ),
    "liu": _Source(
        "J. Liu, Z. Wang, L. Ma, C. Fang, T. Bai, X. Zhang, J. Liu, Z. Chen: Benchmarking Object Detection "
        "Robustness against Real-World Corruptions. International Journal of Computer Vision, 2024.",
        "In percent: CE per detector and fault with the printed average (`ce`), mAP (`map`), change of mCE "
        "across scenarios (`cross_scenario`), change of CE under an enhancement, positive is worse "
        "(`enhancement`). `quality`: SSIM, IFC and VIF per fault.",
        ("ce", "quality", "map", "cross_scenario", "enhancement"),
    ),
    "pezzementi": _Source(
        "Z. Pezzementi, T. Tabor, S. Yim, J. K. Chang, B. Drozd, D. Guttendorf, M. Wagner, P. Koopman: "
        "Putting Image Manipulations in Context: Robustness Testing for Safe Perception. IEEE SSRR, 2018.",
        "Average detection rate as a fraction, 8 systems under 47 mutations and the baseline (Table IV). The "
        "baseline .71 of deformable_rfcnn is probably a misprint for .63, as in its near-identity rows.",
        ("adr",),
    ),
    "theodoridis": _Source(
        "J. Theodoridis, J. Hofmann, J. Maucher, A. Schilling: Trapped in Texture Bias? A Large Scale "
        "Comparison of Deep Instance Segmentation. ECCV 2022.",
        "The paper prints no scores: its results are figures. There is only Table 1, the frameworks "
        "compared, with the backbones and necks of each (`frameworks`).",
        ("frameworks",),
    ),
}


@lru_cache(maxsize=len(_SOURCES))
def published(name: str) -> Published:
    """The numbers of a paper: michaelis, kamann, liu, pezzementi or theodoridis.

    >>> grid = published("michaelis").grids["coco", "retinanet_r50_fpn_1x", "bbox", "AP"]
    >>> round(100 * grid.clean, 1)
    35.6
    """
    if name not in _SOURCES:
        raise UnknownName("paper", name, _SOURCES, f"Available: {', '.join(_SOURCES)}.")
    source = _SOURCES[name]
    tables = {table: _table(f"{name}_{table}.csv") for table in source.tables}
    grids = Grids({} if source.grid is None else _cells(source.grid))
    return Published(name, source.citation, source.note, MappingProxyType(tables), grids)


def measured_change(dataset: str) -> dict[str, dict[str, float]]:
    """RMSE of each condition of imagenet-c, for grids of `dataset` whose paper released none.

    It is ours: the mean over 30 photographs of VOC 2012 or of COCO val2017, under this package's recipes.
    Empty for other datasets.

    >>> measured_change("pascal_voc")["impulse_noise@3"], measured_change("pascal_voc")["gaussian_noise@3"]
    ({'rmse': 43.43}, {'rmse': 41.86})
    """
    rows = _table("imagenet_c_rmse.csv")
    return {
        str(row["condition"]): {"rmse": float(row["rmse"] or 0)} for row in rows if row["dataset"] == dataset
    }


def _table(file: str) -> tuple[PublishedRow, ...]:
    text = (files("stormproof.metrics") / "data" / file).read_text("utf-8")
    return tuple(
        MappingProxyType({key: _value(cell) for key, cell in row.items()})
        for row in csv.DictReader(io.StringIO(text))
    )


def _cells(file: str) -> dict[GridKey, list[tuple[str, int, float]]]:
    packed = (files("stormproof.metrics") / "data" / file).read_bytes()
    cells: dict[GridKey, list[tuple[str, int, float]]] = {}
    rows = csv.reader(io.StringIO(lzma.decompress(packed).decode()))
    next(rows)
    for dataset, model, task, corruption, severity, metric, value in rows:
        cells.setdefault(GridKey(dataset, model, task, metric), []).append(
            (corruption, int(severity), float(value))
        )
    return cells


def _value(cell: str) -> str | float | None:
    if not cell:
        return None
    try:
        return float(cell)
    except ValueError:
        return cell
