"""What `score`, `show`, `compare` and `check` print in a terminal of 80 columns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers.runs import Make
from helpers.typed import stormproof

# Two severities, a whole group of the papers, and the longest names of imagenet-c.
CONDITIONS = [
    "weather@1",
    "weather@3",
    "elastic_transform@1",
    "elastic_transform@3",
    "jpeg_compression[quality=20]",
]
REQUIREMENTS = """
requirements:
  - {id: fog-misses, metric: Miss share, condition: fog@3, at_most: 0.3}
  - {id: calibrated-scores, metric: D-ECE, condition: clean, at_most: 0.1}
  - {id: kept-under-corruption, metric: rPC, of: AP50, at_least: 0.1}
"""
VERBS = {
    "score": ("score", "A"),
    "score with intervals": ("score", "A", "--interval", "--replicates", 50),
    "score of several": ("score", "A", "B"),
    "score by brightness": ("score", "A", "--by", "brightness", "--replicates", 50),
    "show": ("show", "A"),
    "compare": ("compare", "A", "B"),
    "compare with intervals": ("compare", "A", "B", "--interval"),
    "check": ("check", "A", "--require", "REQUIREMENTS", "--replicates", 50),
}


@pytest.fixture(scope="module")
def words(make: Make, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two runs with names as long as people's own, and a file of requirements."""
    path = tmp_path_factory.mktemp("terminal") / "requirements.yaml"
    path.write_text(REQUIREMENTS)
    first, second = (
        make(model, name=name, conditions=CONDITIONS)
        for model, name in (
            ("contrast_masks", "mask_rcnn_r50_fpn_1x_coco"),
            ("contrast_boxes", "faster_rcnn_r50_fpn_1x_coco"),
        )
    )
    return {"A": first, "B": second, "REQUIREMENTS": path}


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_tables_fit_80_columns_and_cut_nothing(words: dict[str, Path], verb: str) -> None:
    asked = [words.get(str(word), word) for word in VERBS[verb]]
    wide, narrow = (stormproof(*asked, columns=columns) for columns in (400, 80))
    assert wide.returncode == narrow.returncode, narrow.stderr
    assert wide.returncode in (0, 1, 3), wide.stderr
    table = [line for line in narrow.stdout.splitlines() if re.match("[┏┃┡│├└]", line)]
    assert table
    assert max(map(len, table)) <= 80
    cells = {word for line in table for word in re.findall(r"[^\s│┃]+", line)}
    for line in wide.stdout.splitlines():
        if line.startswith("│"):
            numbers = re.findall(r"(?<=\s)[+−-]?\d+\.\d+(?=\s)", line)
            assert set(numbers) <= cells, line  # none is broken in two
    assert narrow.stdout.count("…") == wide.stdout.count("…")


@pytest.mark.slow
def test_score_begins_with_the_sentence_of_show(words: dict[str, Path]) -> None:
    first = [stormproof(verb, words["A"]).stdout.splitlines()[0] for verb in ("score", "show")]
    assert first[0] == first[1]
    assert first[0].startswith("contrast_masks keeps ")
