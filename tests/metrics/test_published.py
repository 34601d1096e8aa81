"""The published numbers load, are small, and equal their sources where these are available."""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path

import pytest

from stormproof.core.errors import UnknownName
from stormproof.metrics.published import published

SHARED = Path(__file__).parents[3] / "shared"
TABLES = {
    "michaelis_models.csv": ("michaelis", "models"),
    "michaelis_stylized_training.csv": ("michaelis", "stylized_training"),
    "kamann_table1_cityscapes_miou.csv": ("kamann", "cityscapes"),
    "kamann_table4_ade20k_miou.csv": ("kamann", "ade20k"),
    "liu_table2_ce.csv": ("liu", "ce"),
    "liu_table2_quality.csv": ("liu", "quality"),
    "liu_table3_map.csv": ("liu", "map"),
    "liu_table4_cross_scenario.csv": ("liu", "cross_scenario"),
    "liu_table5_enhancement_delta_ce.csv": ("liu", "enhancement"),
    "pezzementi_table4_adr.csv": ("pezzementi", "adr"),
}


def test_all_papers_load_with_citation():
    for name in ("michaelis", "kamann", "liu", "pezzementi", "theodoridis"):
        paper = published(name)
        assert paper.name == name
        assert paper.citation
        assert all(rows for rows in paper.tables.values())


def test_every_grid_is_complete():
    grids = published("michaelis").grids
    assert len(grids) == 411
    for key in list(grids)[::29]:
        grid = grids[key]
        grid.require_complete()
        assert len(grid.scores) == 1 + 19 * 5
        assert len(grid.expected) == 15 * 5, "the paper's means are over the 15 of the benchmark"
        assert 0 <= grid.clean <= 1


def test_package_data_is_small():
    data = files("stormproof.metrics") / "data"
    assert sum(len(file.read_bytes()) for file in data.iterdir()) < 500_000


def test_unknown_names_get_a_hint():
    with pytest.raises(UnknownName, match="Did you mean 'michaelis'"):
        published("michaelas")
    with pytest.raises(UnknownName, match="Did you mean 'coco/retinanet_r50_fpn_1x/bbox/AP'"):
        published("michaelis").grids["coco", "retinanet_r50_fpn", "bbox", "AP"]
    with pytest.raises(UnknownName, match="coco/retinanet_r50_fpn_1x"):
        published("michaelis").grids["coco", "retinanet_r50_fpn_1x"]


@pytest.mark.parametrize("file", TABLES)
def test_tables_equal_their_source(file):
    source = SHARED / "golden" / file
    if not source.is_file():
        pytest.skip(f"the papers' tables are not at {source.parent}")
    paper, table = TABLES[file]
    with source.open(newline="") as lines:
        expected = list(csv.DictReader(lines))
    packed = published(paper).tables[table]
    assert len(packed) == len(expected)
    for ours, theirs in zip(packed, expected, strict=True):
        assert dict(ours) == {key: _text(value) for key, value in theirs.items()}


def _text(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return value or None


def test_grids_equal_their_source():
    source = SHARED / "published/detection_corruption_ap.csv"
    if not source.is_file():
        pytest.skip(f"the released grids are not at {source.parent}")
    from stormproof.core.condition import CLEAN, Condition

    grids, held, count = published("michaelis").grids, {}, 0
    with source.open(newline="") as lines:
        for row in csv.DictReader(lines):
            key = (row["dataset"], row["model"], row["task"], row["metric"])
            grid = held.get(key) or held.setdefault(key, grids[key])
            severity = int(row["severity"])
            condition = Condition.of(row["corruption"], severity) if severity else CLEAN
            assert grid.scores[condition] == float(row["value"])
            count += 1
    assert count == 46_854
    assert len(held) == len(grids)
