"""Image quality per condition: the right numbers, whoever computes them and in whatever order."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from stormproof.cli import app
from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidCondition, InvalidOption
from stormproof.core.imagefile import read_image, write_image
from stormproof.core.sample import Sample
from stormproof.corruptions import corrupt_image
from stormproof.metrics import fidelity, quality
from stormproof.tools.quality_table import (
    Quality,
    QualityRow,
    average,
    measure,
    over_severities,
    whole_images,
)

CONDITIONS = tuple(
    map(Condition.parse, ("gamma_damage@3", "bad_pixel_damage@2", "cfa_interpolation_damage@5"))
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three colour images, the last too small for wavelets."""
    y, x = np.mgrid[:120, :144]
    for i, size in enumerate(((120, 144), (96, 100), (60, 90))):
        waves = 120 + 80 * np.sin((x + 30 * i)[..., None] / (5 + i) + np.arange(3)) * np.cos(y[..., None] / 9)
        write_image(tmp_path / f"{i}.png", waves.astype(np.uint8)[: size[0], : size[1]])
    return tmp_path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["quality", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_numbers_are_those_of_the_metrics(folder: Path) -> None:
    measured = list(measure(f"images:{folder}", CONDITIONS, indices=[0, 1, 2], seed=3, workers=1))
    for i, image in enumerate(measured):
        clean = read_image(folder / f"{i}.png")
        for condition, found in zip(CONDITIONS, image, strict=True):
            dirty = corrupt_image(clean, condition, seed=3, image_id=str(i))
            assert found.rmse == quality.rmse(clean, dirty)
            assert found.snr == quality.snr(clean, dirty)
            assert found.ssim == quality.ssim(clean, dirty)
            if i < 2:
                assert found.vif == pytest.approx(fidelity.vif(clean, dirty), abs=1e-12)
                assert found.ifc == pytest.approx(fidelity.ifc(clean, dirty), rel=1e-12)
            else:
                assert math.isnan(found.vif)
                assert math.isnan(found.ifc)


def test_the_number_of_workers_changes_no_bit(folder: Path) -> None:
    one, two = (
        list(measure(f"images:{folder}", CONDITIONS, indices=[0, 1, 2], seed=0, workers=n)) for n in (1, 2)
    )
    assert repr(average(CONDITIONS, one)) == repr(average(CONDITIONS, two))


def test_means_leave_out_what_has_no_finite_value() -> None:
    clean = Condition.parse("gamma_damage[gamma=1]")
    rows = average(
        [clean], [[Quality(0.0, math.inf, 1.0, 1.0, math.inf)], [Quality(4.0, 20.0, 0.5, math.nan, math.nan)]]
    )
    assert rows[0].means == (2.0, 20.0, 0.75, 1.0, None)
    assert (rows[0].images, rows[0].unchanged) == (2, 1)
    assert average([clean], [])[0].means == (None,) * 5


def test_the_mean_does_not_depend_on_the_order_of_images() -> None:
    values = [Quality(x, x, x, x, x) for x in (1e16, 1.0, -1e16, 0.1, 3.7)]
    forwards, backwards = (average(CONDITIONS[:1], [[v] for v in order]) for order in (values, values[::-1]))
    assert forwards == backwards


def test_equal_images_are_perfect() -> None:
    image = np.random.default_rng(0).integers(0, 256, (90, 90, 3), dtype=np.uint8)
    found = whole_images(Sample("", image), [image.copy()])[0]
    assert (found.rmse, found.snr, found.ssim, found.ifc) == (0, math.inf, 1, math.inf)
    assert found.vif == pytest.approx(1)


def test_json_csv_and_table_say_the_same(folder: Path) -> None:
    what = (
        f"images:{folder}",
        "--conditions",
        "gamma_damage@3",
        "--conditions",
        "memory_exception@5",
        "-j",
        "1",
    )
    records = json.loads(run(*what, "--json"))
    assert [r["condition"] for r in records] == ["gamma_damage@3", "memory_exception@5"]
    assert all(r["images"] == 3 for r in records)
    rows = list(csv.DictReader(io.StringIO(run(*what, "--csv"))))
    assert [float(row["ssim"]) for row in rows] == [r["ssim"] for r in records]
    assert f"{records[0]['ssim']:.3f}" in run(*what)


def test_a_suite_gives_a_row_per_condition_and_a_limit_takes_fewer_images(folder: Path) -> None:
    records = json.loads(
        run(f"images:{folder}", "--conditions", "camera", "--limit", "1", "-j", "1", "--json")
    )
    assert len(records) == 80
    assert {r["images"] for r in records} == {1}
    spread = json.loads(
        run(f"images:{folder}", "--conditions", "gamma_damage@1", "--limit", "2", "-j", "1", "--json")
    )
    assert spread[0]["images"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "No conditions given; name them with --conditions"),
        (("--conditions", "camera", "--limit", "0"), "--limit 0"),
        (("--conditions", "camera", "--workers", "-1"), "--workers -1"),
        (("--conditions", "camera", "--json", "--csv"), "not both"),
    ],
)
def test_bad_options_say_what_to_do(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        run(f"images:{folder}", *arguments)


def test_a_bad_condition_is_refused_before_any_work(folder: Path) -> None:
    bad = Condition.parse("gamma_damage[gamma=99]")
    with pytest.raises(InvalidCondition, match="gamma must lie in"):
        next(measure(f"images:{folder}", [bad], indices=[0], seed=0, workers=2))


def test_means_over_severities_are_rows_of_their_own() -> None:
    rows = [
        QualityRow("fog@1", 3, 0, (1.0, None, 0.9, 0.5, 2.0)),
        QualityRow("fog@2", 3, 1, (3.0, 8.0, 0.7, 0.1, 1.0)),
        QualityRow("clean", 3, 3, (0.0, None, 1.0, 1.0, None)),
        QualityRow("snow@1", 3, 0, (1.0, 1.0, 1.0, 1.0, 1.0)),
    ]
    (mean,) = over_severities(rows)
    assert mean == QualityRow("fog, mean", 3, 1, (2.0, 8.0, pytest.approx(0.8), pytest.approx(0.3), 1.5))
