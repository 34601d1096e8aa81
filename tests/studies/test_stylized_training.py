"""The study of stylized training: means, gains and verdicts from numbers made by hand."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from stormproof.corruptions.groups import BENCHMARK_15
from stormproof.models.builtin import find_builtin
from stormproof.results.interval import Interval

FOLDER = Path(__file__).resolve().parents[2] / "studies" / "stylized_training"


@pytest.fixture(scope="module")
def study() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("stylized_training_study", FOLDER / "study.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)  # where a script finds its neighbours
        spec.loader.exec_module(module)
        yield module


@pytest.fixture
def found(study: ModuleType) -> dict[tuple[str, int], dict[str, dict[str, object]]]:
    """Two seeds; combined is 2 and 4 points above standard, image by image."""
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 5, 200)  # the same images weigh alike in all of them
    level = {"standard": 40.0, "stylized": 30.0, "combined": 40.0}
    extra = {("combined", 1): 2.0, ("combined", 2): 4.0}
    return {
        (training, seed): {"AP": {"rPC": study.Value(at, at + noise)}}
        for training, base in level.items()
        for seed in (1, 2)
        for at in (base + extra.get((training, seed), 0.0),)
    }


def test_a_gain_is_paired_by_image_and_a_mean_over_seeds(study: ModuleType, found: dict) -> None:
    gain = study.gain(found, "combined", [1, 2], "AP", "rPC")
    assert gain.estimate == pytest.approx(3)
    assert gain.replicates == pytest.approx(np.full(200, 3.0))  # what the images share has cancelled
    assert study.from_to(gain) == "+3.0 (+3.0 to +3.0)"
    assert study.pooled(found, "combined", "AP", "rPC").estimate == pytest.approx(43)


@pytest.mark.parametrize(
    ("theirs", "low", "high", "verdict"),
    [
        ((9.5, 8.7, 14.0), 8.0, 11.0, "yes"),
        ((9.5, 8.7, 14.0), 1.0, 5.0, "yes, but smaller"),
        ((-0.1, -1.7, -0.1), -15.2, -13.1, "yes, but larger"),
        ((9.5, 8.7, 14.0), -5.0, -1.0, "**no**"),
        ((9.5, 8.7, 14.0), -1.0, 5.0, "not clear here"),
        ((1.4, -4.1, 2.5), 1.0, 5.0, "the paper's differ"),
    ],
)
def test_agreement_is_a_sign_that_is_known(
    study: ModuleType, theirs: tuple[float, ...], low: float, high: float, verdict: str
) -> None:
    assert study.agreement(theirs, Interval((low + high) / 2, low, high, 1.0)) == verdict


def test_a_seed_counts_where_all_three_trainings_have_it(study: ModuleType, tmp_path: Path) -> None:
    for name in ("standard-1", "stylized-1", "combined-1", "standard-2", "standard-1b"):
        (tmp_path / f"grid-{name}.onnx").touch()
    assert set(study.networks(tmp_path)) == {(training, 1) for training in study.TRAININGS}
    (tmp_path / "grid-stylized-1.onnx").unlink()
    with pytest.raises(SystemExit, match=r"README\.md says how to train"):
        study.networks(tmp_path)


def test_the_studys_own_folder_is_filled_up_from_the_package(study: ModuleType) -> None:
    found = study.networks(study.WEIGHTS)
    assert set(found) == {(training, seed) for training in study.TRAININGS for seed in (1, 2)}
    assert found["stylized", 1] == find_builtin("street-grid-stylized").path
    assert all(path.is_file() for path in found.values())
    assert study.trainings(study.WEIGHTS) in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_papers_table_is_the_published_one(study: ModuleType) -> None:
    assert study.published_row("coco", "combined")["rpc_percent"] == 58.9
    assert study.published_row("cityscapes", "standard")["mpc"] == 12.2


def test_the_figure_is_drawn(study: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw = importlib.import_module("figure").draw
    rng = np.random.default_rng(0)
    names = ["P", *(f"by_severity/{k}" for k in range(1, 6)), *(f"by_corruption/{n}" for n in BENCHMARK_15)]
    values = {name: study.Value(40.0, rng.normal(40, 2, 20)) for name in names}
    draw({(training, 1): {"AP": values} for training in study.TRAININGS}, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
