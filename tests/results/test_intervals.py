"""Intervals of runs: weights of ones are the scores in every measure, every class and every aggregate."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import stormproof
from helpers.crowds import crowded_set, repeated
from helpers.runs import Make
from helpers.scenes import write_scene, write_street
from helpers.scored_models import MODELS
from stormproof.cli import app
from stormproof.core.errors import InvalidOption
from stormproof.core.sample import Image, Prediction, Sample, SemanticMap, Truth
from stormproof.datasets.dataset import SampleDataset
from stormproof.engine.config import make_config
from stormproof.engine.run import run as run_it
from stormproof.metrics.inputs import Objects
from stormproof.metrics.records import Detections
from stormproof.results import scoring
from stormproof.results.aggregates import flatten
from stormproof.results.documents import as_dict
from stormproof.results.interval import unseen_share
from stormproof.results.run import Run
from stormproof.results.scores import Scores
from stormproof.results.weights import half_weights, poisson_weights


@pytest.fixture
def ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every replicate is the set itself."""
    monkeypatch.setattr(
        scoring, "half_weights", lambda ids, *, replicates: np.ones((replicates, len(ids)), np.uint8)
    )


def anew(run: Path, **options: object) -> Scores:
    """Scores that nothing stored before can be the source of, and that are not stored for others."""
    shutil.rmtree(run / "scores", ignore_errors=True)
    found = Run(run).score(**options)  # type: ignore[arg-type]
    shutil.rmtree(run / "scores", ignore_errors=True)
    return found


@pytest.mark.usefixtures("ones")
@pytest.mark.parametrize(("model", "on"), [("contrast_masks", "scene"), ("other_names", "street")])
def test_weights_of_one_give_the_scores_of_a_run(make: Make, model: str, on: str) -> None:
    scores = anew(make(model, on), replicates=50)
    assert scores.replicates is not None
    wanted = {"scene": {"AP", "APs", "AR1", "E", "VOC07 AP50", "flaws PMD", "mask AP"}, "street": {"mIoU"}}
    assert wanted[on] <= {*scores.replicates.per_condition}
    assert {*scores.replicates.per_condition} == {*scores.per_condition}
    for measure, cells in scores.replicates.per_condition.items():
        expected = scores.per_condition[measure]
        assert {text: v[2] for text, v in cells.items()} == pytest.approx(expected, abs=1e-12, nan_ok=True)
        totals, spread = flatten(scores.aggregates[measure]), scores.spread(measure)
        one = {name: spread[name][2] for name in totals}
        assert one == pytest.approx(totals, abs=1e-12, nan_ok=True)
    assert {*scores.replicates.per_class} == {*scores.per_class}
    for measure, by_condition in scores.replicates.per_class.items():
        for text, by_class in by_condition.items():
            values = {name: interval.estimate for name, interval in by_class.items()}
            assert values == pytest.approx(scores.per_class[measure][text], abs=1e-12, nan_ok=True)
            for interval in (each for each in by_class.values() if not np.isnan(each.se)):
                # Without a spread, images unlike those seen decide how far an interval reaches.
                reach = unseen_share(interval.images) * max(interval.estimate, 1 - interval.estimate)
                assert interval.high - interval.low >= min(reach, 1 - reach)


def test_intervals_contain_the_scores(make: Make) -> None:
    run = make("contrast_boxes")
    scores = Run(run).score(interval=True)
    mean = scores.interval("mean", "AP")
    assert mean.low < scores.aggregates["AP"]["mean"] == mean.estimate < mean.high
    conditions = {*scores.conditions}
    assert {*scores.intervals("AP")} - conditions == {*flatten(scores.aggregates["AP"])}
    assert "CE/fog" in scores.intervals("E")
    said = as_dict(scores)["intervals"]
    assert "8 images are few" in said["warning"]
    assert said["aggregates"]["AP"]["mean"]["estimate"] == mean.estimate
    assert said["cells"]["AP"]["fog@3"]["low"] == scores.interval("fog@3", "AP").low
    assert (said["images"], said["replicates"]) == (8, 200)
    score, clean, fog = (
        scores.score("AP"),
        *(scores.replicates.per_condition["AP"][c] for c in ("clean", "fog@3")),
    )
    assert clean[0] < score
    assert score - clean[1] == pytest.approx(0.8 * (score - clean[0]))  # others are relative to it
    assert fog[0] == fog[1]


def test_every_measure_of_a_run_has_an_interval(make: Make) -> None:
    """VOC's AP, recalls, counts of flaws and errors among them, not COCO's AP alone."""
    scores = Run(make("contrast_masks")).score(interval=True)
    known = [name for name in scores if not np.isnan(scores.score(name, "fog@3"))]
    assert {"AP", "AR100", "VOC07 AP50", "VOC10 AP50", "mask AR1", "E", "flaws MD", "images PMD"} <= {*known}
    for name in known:
        interval = scores.interval("fog@3", name)
        seen = np.isfinite(scores.replicates.per_condition[name]["fog@3"][2:]).mean()
        if seen < 0.5:  # too few halves show what it is of
            assert np.isnan(interval.low), name
        else:
            assert interval.low <= interval.estimate <= interval.high, name


def test_intervals_are_over_the_suite_of_the_scores(make: Make) -> None:
    run = make("contrast_boxes", name="noise-and-fog", conditions=["noise,fog@3"])
    scores = Run(run).score(interval=True)
    mpc = scores.interval("mPC")
    assert mpc.low < scores.aggregates["AP"]["mPC"] == mpc.estimate == scores.mpc < mpc.high


@pytest.mark.usefixtures("ones")
def test_cd_and_rcd_have_intervals(make: Make) -> None:
    run, other = (
        make(model, "street", name=f"{model}-noise", conditions=["noise"])
        for model in ("thresholds", "other_names")
    )
    shutil.rmtree(other / "scores", ignore_errors=True)
    found = anew(run, replicates=50, reference=other).intervals("mIoU")
    shutil.rmtree(other / "scores")
    assert {"CD/shot_noise", "mCD", "rCD/gaussian_noise", "mrCD", "delta_P", "delta_mPC"} <= {*found}
    known = [interval.optimism for interval in found.values() if not np.isnan(interval.optimism)]
    assert known == pytest.approx(np.zeros(len(known)), abs=1e-12)


def test_a_run_does_not_differ_from_itself_and_pairs_keep_their_correlation(make: Make) -> None:
    scores = Run(make("contrast_boxes", name="noise-and-fog", conditions=["noise,fog@3"])).score(
        interval=True
    )
    found = (scores - scores)["AP"]
    reach = unseen_share(8)  # images unlike these may differ
    assert (found["mPC"].interval.low, found["mPC"].interval.high) == pytest.approx((-reach, reach))
    assert found["mPC"].holm == 1
    assert {"P", "rPC", "by_corruption/shot_noise", "fog@3"} <= {*found}


def test_differences_are_of_what_both_have_and_are_corrected_together(make: Make) -> None:
    run, other = Run(make("contrast_boxes")), Run(make("cat_boxes", name="cats-too"))
    mine, theirs = (each.score(interval=True) for each in (run, other))
    found = (mine - theirs)["AP"]
    for text in ("clean", "fog@3", "mean"):
        value = found[text].interval.estimate
        assert value == pytest.approx(mine.values("AP")[text] - theirs.values("AP")[text])
    assert all(each.holm >= each.p for each in found.values() if not np.isnan(each.p))


def test_pairs_need_the_same_images_and_as_many_replicates(make: Make) -> None:
    boxes, maps = Run(make("contrast_boxes")), Run(make("other_names", "street"))
    with pytest.raises(InvalidOption, match="same images"):
        boxes.score(interval=True) - maps.score(interval=True)
    with pytest.raises(InvalidOption, match="use the same number for both"):
        boxes.score(interval=True) - boxes.score(replicates=50)
    with pytest.raises(InvalidOption, match="interval=True"):
        boxes.score() - boxes.score()


@pytest.mark.parametrize("seed", range(3))
def test_detection_rates_equal_those_of_copied_images(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, clean = crowded_set(14, rng)
    weaker = np.round(clean.scores * rng.random(len(clean)), 2)
    worse = Detections(clean.image, clean.boxes, weaker, clean.labels)
    times = rng.poisson(1.5, 14)

    def rates(truth, clean, worse, weights):  # type: ignore[no-untyped-def]
        before = Objects(truth, clean, person=0).people
        return Objects(truth, worse, person=0, clean=before).scored(weights).numbers

    weighed = rates(truth, clean, worse, times[None].astype(np.uint8))
    wide, wide_clean = repeated(truth, clean, times)
    _, wide_worse = repeated(truth, worse, times)
    copied = rates(wide, wide_clean, wide_worse, np.ones((1, len(wide.ids))))
    for name in ("ADR", "FPPI"):
        assert weighed[name] == pytest.approx(copied[name], abs=1e-12)


def test_an_image_has_the_same_weights_in_every_run() -> None:
    many = poisson_weights([f"{i}" for i in range(300)], replicates=100, seed=3)
    few = poisson_weights(["7", "299"], replicates=40, seed=3)
    assert (few == many[:40, [7, 299]]).all()
    assert many.mean() == pytest.approx(1, abs=0.02)
    assert many.var() == pytest.approx(1, abs=0.05)
    assert (poisson_weights(["7"], replicates=40, seed=4) != few[:, :1]).any()


def test_an_image_is_in_the_same_halves_in_every_run() -> None:
    ids = [f"{i}" for i in range(300)]
    many = half_weights(ids, replicates=100, seed=3)
    assert {*np.unique(many)} == {0, 1}
    assert many.mean() == pytest.approx(0.5, abs=0.01)
    assert (half_weights(["7", "299"], replicates=40, seed=3) == many[:40, [7, 299]]).all()
    assert (half_weights(ids, replicates=100, seed=4) != many).any()
    assert abs(np.corrcoef(many)[0, 1:]).max() < 0.3  # rows are independent
    assert half_weights([], replicates=4).shape == (4, 0)


@pytest.fixture(scope="module")
def with_holes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of which one image could not be read, on boxes with masks and on label maps."""
    made = {}
    for model, write in (("contrast_masks", write_scene), ("thresholds", write_street)):
        folder = tmp_path_factory.mktemp(model)
        data = write(folder / "data", images=8)
        (folder / "data" / "images" / "003.png").write_bytes(b"no image")
        settings = {"model": f"{MODELS}:{model}", "data": data, "out": str(folder / "run"),
                    "conditions": ["fog,gaussian_noise"], "engine": "local"}  # fmt: skip
        run_it(make_config(settings))
        made[model] = folder / "run"
    return made


@pytest.mark.usefixtures("ones")
@pytest.mark.parametrize("model", ["contrast_masks", "thresholds"])
def test_an_image_that_could_not_be_read_counts_nowhere(with_holes: dict[str, Path], model: str) -> None:
    scores = anew(with_holes[model], replicates=50)
    said = as_dict(scores)["intervals"]
    assert (scores.images, len(scores.left_out)) == (7, 1) == (said["images"], len(said["left_out"]))
    assert scores.replicates is not None
    for measure, cells in scores.replicates.per_condition.items():
        expected = scores.per_condition[measure]
        assert {text: v[2] for text, v in cells.items()} == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_an_image_that_could_not_be_read_has_no_weight(
    with_holes: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name draws none, so it can change none: the others keep the weights of their own names."""
    asked: list[tuple[str, ...]] = []

    def noted(ids: tuple[str, ...], *, replicates: int) -> np.ndarray:
        asked.append(tuple(ids))
        return half_weights(ids, replicates=replicates)

    monkeypatch.setattr(scoring, "half_weights", noted)
    for model in ("contrast_masks", "thresholds"):
        run = Run(with_holes[model])
        anew(run.folder, replicates=50)
        assert asked.pop() == tuple(name for i, name in enumerate(run.dataset.ids) if i != 3)


def test_pairs_leave_the_same_images_out(with_holes: dict[str, Path]) -> None:
    holes = Run(with_holes["contrast_masks"]).score(interval=True)
    assert (holes - holes)["AP"]["mean"].interval.estimate == 0
    whole = replace(holes, origin=replace(holes.origin, left_out=()))
    with pytest.raises(InvalidOption, match=r"1 image could be read in one run and not in the other \(4\)"):
        holes - whole


def test_says_how_many_images_were_left_out(with_holes: dict[str, Path]) -> None:
    shown = CliRunner().invoke(app, ["score", str(with_holes["contrast_masks"]), "--interval", "--all"])
    assert shown.exit_code == 0, shown.output
    assert "7 of 8 images (1 unreadable)" in " ".join(shown.stdout.split())
    assert "scored on 7 of 8 images" in shown.stderr


def test_a_class_of_one_image_has_no_interval(tmp_path: Path) -> None:
    """Its replicates are all alike: a spread of nothing would be claimed where nothing is known."""
    import json

    data = write_scene(tmp_path / "scene", images=8)
    file = tmp_path / "scene" / "instances.json"
    content = json.loads(file.read_text())
    content["categories"].append({"id": 3, "name": "owl"})
    content["annotations"][3] |= {"category_id": 3}
    file.write_text(json.dumps(content))
    settings = {"model": f"{MODELS}:three_classes", "data": data, "out": str(tmp_path / "run"),
                "conditions": ["fog@1"], "engine": "local"}  # fmt: skip
    run_it(make_config(settings))
    scores = Run(tmp_path / "run").score(interval=True)
    assert scores.replicates is not None
    for measure in ("AP", "VOC07 AP50", "E"):
        found = scores.replicates.per_class[measure]["clean"]
        assert {*found} == {"cat", "dog", "owl"}
        assert np.isnan([found["owl"].low, found["owl"].high, found["owl"].se]).all(), measure
        assert not np.isnan([found["cat"].se, found["dog"].se]).any(), measure
        assert found["owl"].estimate == scores.per_class[measure]["clean"]["owl"]


def test_a_class_of_one_label_map_has_no_interval(tmp_path: Path) -> None:
    """Most halves that show its image agree on its IoU, which says nothing about other images."""
    rng = np.random.default_rng(0)
    samples, guesses = [], {}
    for k in range(12):
        labels = rng.integers(0, 2, (8, 8)).astype(np.uint8)
        labels[0, :4] = 2 if k == 3 else labels[0, :4]  # the only image with a train
        image = np.full((8, 8, 3), 10 * k, np.uint8)
        samples.append(Sample(f"{k}", image, Truth(semantic=SemanticMap(labels))))
        guesses[10 * k] = np.where(rng.random((8, 8)) < 0.2, 0, labels).astype(np.uint8)
    names = ("road", "sky", "train")
    dataset = SampleDataset.of(samples, semantic_classes=names)

    def guess(images: Sequence[Image]) -> list[Prediction]:
        return [Prediction(semantic=guesses[int(image[0, 0, 0])]) for image in images]

    run = stormproof.run(guess, dataset, out=tmp_path / "run", conditions="clean", progress=False)
    found = run.score(interval=True).replicates
    assert found is not None
    by_class = found.per_class["IoU"]["clean"]
    assert by_class["train"].estimate > 0
    assert np.isnan([by_class["train"].low, by_class["train"].high, by_class["train"].se]).all()
    assert [by_class[name].images for name in names] == [12, 12, 1]
    assert by_class["road"].se > 0
