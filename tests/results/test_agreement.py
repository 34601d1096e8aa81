"""Synthetic corruption against real weather: ranks of models and of classes, and scores relative to clear."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from typer.testing import CliRunner

from stormproof.cli import app
from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.sample import Image, Prediction, Sample, SemanticMap, Truth
from stormproof.datasets.dataset import SampleDataset
from stormproof.engine.api import run as run_it
from stormproof.results.agreement import CLEAN, MEAN, _group, _items, agree, spearman
from stormproof.results.run import Run

CLASSES = ("road", "car", "sky", "tree")


def model(name: str, noise: float) -> Callable[[list[Image]], list[Prediction]]:
    """Reads classes off grey levels in four steps; gets more of them wrong the noisier it is, and the
    brighter the image."""

    def said(images: list[Image]) -> list[Prediction]:
        found = []
        for image in images:
            grey = image[..., 0].astype(float)
            rng = np.random.default_rng(int(grey.sum()))
            level = grey + rng.normal(0, noise * (1 + grey.mean() / 128), grey.shape)
            found.append(Prediction(semantic=np.clip(level // 64, 0, 3).astype(np.uint8)))
        return found

    said.semantic_classes = CLASSES  # type: ignore[attr-defined]
    said.name = name  # type: ignore[attr-defined]
    said.__qualname__ = said.__name__ = name
    return said


def scenes(lift: dict[str, int], images: int = 8) -> SampleDataset:
    """Label maps shown as grey levels, brighter by condition, as fog is."""
    rng = np.random.default_rng(1)
    samples = []
    for condition, more in lift.items():
        for k in range(images):
            labels = np.kron(rng.integers(0, 4, (4, 6)), np.ones((8, 8), int)).astype(np.uint8)
            grey = np.clip(labels.astype(int) * 64 + 20 + more, 0, 255).astype(np.uint8)
            image = np.repeat(grey[..., None], 3, axis=2)
            samples.append(Sample(f"{condition}/{k}", image, Truth(semantic=SemanticMap(labels))))
    return SampleDataset.of(samples, name="scenes", semantic_classes=CLASSES)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Run], list[Run], Path]:
    folder = tmp_path_factory.mktemp("sides")
    made, weather = scenes({"any": 0}), scenes({"clear": 0, "fog": 25})
    table = folder / "weather.csv"
    rows = [f"{name},{name.partition('/')[0]}\n" for name in weather.ids]
    table.write_text("".join(["id,weather\n", *rows]))
    ours, theirs = [], []
    for name, noise in (("steady", 2.0), ("fair", 9.0), ("shaky", 20.0), ("wild", 45.0)):
        for data, conditions, runs in ((made, "brightness@1,brightness@2", ours), (weather, "clean", theirs)):
            out = folder / f"{name}-{len(conditions)}"
            settings = {"conditions": conditions, "out": out, "engine": "local"}
            run_it(model=model(name, noise), data=data, **settings)  # type: ignore[arg-type]
            runs.append(Run(out, data=data))
    return ours, theirs, table


def test_rank_correlation_of_models_by_hand(sides: tuple[list[Run], list[Run], Path]) -> None:
    ours, theirs, table = sides
    found = agree(ours, theirs, by=str(table), replicates=60)
    assert (found.over, found.measure) == ("models", "mIoU")
    assert found.items == ("steady", "fair", "shaky", "wild")
    assert [*found.correlations] == [CLEAN, MEAN, "brightness"]
    assert [*found.correlations[MEAN]] == ["all images", "clear", "fog"]
    # By hand, from the scores themselves.
    mean = [np.mean([run.score().per_condition["mIoU"][f"brightness@{s}"] for s in (1, 2)]) for run in ours]
    fog = [run.slices(str(table), replicates=50)["fog"].score("mIoU") for run in theirs]
    assert found.correlations["brightness"]["fog"].estimate == pytest.approx(spearmanr(mean, fog).statistic)
    assert found.correlations[MEAN]["fog"].estimate > 0.5


def test_degrees_of_freedom_come_from_the_smaller_sample(
    sides: tuple[list[Run], list[Run], Path], tmp_path: Path
) -> None:
    """The grid has 8 images; the real set has 16, of which 3 are in snow."""
    ours, theirs, _ = sides
    table = tmp_path / "snow.csv"
    names = [f"{name},{'snow' if k < 3 else 'dry'}\n" for k, name in enumerate(theirs[0].ids)]
    table.write_text("".join(["id,snow\n", *names]))
    found = agree(ours, theirs, by=str(table), replicates=50).correlations[MEAN]
    assert {part: each.images for part, each in found.items()} == {"all images": 8, "dry": 8, "snow": 3}
    one = agree(ours[:1], theirs[:1], by=str(table), replicates=50).correlations[MEAN]
    assert one["snow"].images == 3


def test_one_model_is_compared_by_its_classes(sides: tuple[list[Run], list[Run], Path]) -> None:
    ours, theirs, _ = sides
    found = agree(ours[2:3], theirs[2:3], replicates=60)
    assert (found.over, found.items) == ("classes", CLASSES)
    synthetic = ours[2].score()
    mean = [
        np.mean([synthetic.per_class["IoU"][f"brightness@{s}"][name] for s in (1, 2)]) for name in CLASSES
    ]
    real = [theirs[2].score().per_class["IoU"]["clean"][name] for name in CLASSES]
    sure = found.correlations[MEAN]["all images"]
    assert sure.estimate == pytest.approx(spearmanr(mean, real).statistic)
    assert sure.low <= sure.estimate <= sure.high


def test_refuses_runs_that_cannot_be_ranked(sides: tuple[list[Run], list[Run], Path]) -> None:
    ours, theirs, _ = sides
    with pytest.raises(InvalidOption, match="cannot be ranked"):
        agree(ours[:2], theirs[:2], replicates=50)
    with pytest.raises(InvalidOption, match="No model was run on both sides"):
        agree(ours[:1], theirs[1:], replicates=50)
    with pytest.raises(InvalidOption, match="no corrupted conditions"):
        agree(theirs, ours, replicates=50)
    with pytest.raises(InvalidOption, match="are runs of steady on the same side"):
        agree([*ours, ours[0]], theirs, replicates=50)
    with pytest.raises(InvalidOption, match="pixel accuracy has no scores by class"):
        agree(ours[:1], theirs[:1], measure="pixel accuracy", replicates=50)


def test_a_corruption_counts_by_its_mean_over_severities_and_all_by_the_mean_of_those() -> None:
    """Fog's mean is 0.3 and its highest 0.5; blur's only severity is 0.1."""
    cells = {"clean": 0.9, "fog@1": 0.5, "fog@2": 0.3, "fog@3": 0.1, "blur@5": 0.1, "haze[beta=0.1]": 0.2}
    found = _group({"": {text: np.full(3, value) for text, value in cells.items()}})
    assert {name: values.tolist() for name, values in found.items()} == {
        CLEAN: [0.9] * 3,
        MEAN: pytest.approx([0.2] * 3),
        "fog": pytest.approx([0.3] * 3),
        "blur": pytest.approx([0.1] * 3),
        "haze": pytest.approx([0.2] * 3),
    }


def test_models_are_ranked_only_if_they_have_a_score_everywhere() -> None:
    known = {name: np.array([value, value]) for name, value in (("a", 0.1), ("b", 0.2), ("c", 0.3))}
    gap = {**known, "b": np.array([np.nan, 0.2])}
    assert _items({"fog": known}, {"real": gap, "other": known}) == ("a", "c")
    assert _items({"fog": known}, {"real": {"a": known["a"], "c": known["c"]}}) == ("a", "c")


def test_a_larger_spread_widens_the_interval() -> None:
    rng = np.random.default_rng(0)
    steady = {str(k): np.full(101, float(k)) for k in range(10)}
    noisy = {str(k): k + np.concatenate([[0.0], rng.normal(0, 3, 100)]) for k in range(10)}
    assert spearman(steady, steady, [*steady]).se == 0
    found = spearman(steady, noisy, [*steady])
    assert found.estimate == 1.0
    assert found.low < 0.95


def test_slices_are_relative_to_the_clear_slice(sides: tuple[list[Run], list[Run], Path]) -> None:
    ours, theirs, table = sides
    found = theirs[1].slices(str(table), clean="clear", replicates=60)
    kept = found.relative()
    clear = kept["clear"]
    assert (clear.estimate, clear.low, clear.high) == pytest.approx((1.0, 1.0, 1.0))
    assert kept["fog"].estimate == pytest.approx(found["fog"].score("mIoU") / found["clear"].score("mIoU"))
    assert kept["fog"].low < kept["fog"].estimate < kept["fog"].high
    other = theirs[1].slices(str(table), clean=ours[1], replicates=60)
    expected = found["fog"].score("mIoU") / ours[1].score().per_condition["mIoU"]["clean"]
    assert other.relative()["fog"].estimate == pytest.approx(expected)
    assert "% of clear" in found.table().columns
    with pytest.raises(UnknownName, match="clear"):
        theirs[1].slices(str(table), clean="cleer", replicates=50)


def test_the_command_prints_agreement(
    sides: tuple[list[Run], list[Run], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from stormproof.results import run as runs

    ours, theirs, table = sides
    data = {run.record.dataset.fingerprint: run.dataset for run in (ours[0], theirs[0])}
    monkeypatch.setattr(runs, "_reopen", lambda record, _: data[record.dataset.fingerprint])
    asked = ["agree", str(ours[1].folder), str(theirs[1].folder), "--by", str(table), "--replicates", "50"]
    shown = CliRunner().invoke(app, asked)
    assert shown.exit_code == 0, shown.output
    assert "Over 4 classes" in " ".join(shown.output.split())
    lines = CliRunner().invoke(app, [*asked, "--csv"]).stdout.splitlines()
    assert lines[0] == "synthetic,all images,clear,fog"
    assert len(lines) == 4
