"""The first screen: the verdict, where runs break, the most telling failures; and what follows below it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers.toy_scores import toy_scores
from stormproof.core.sample import Instances, Prediction, Sample, Truth
from stormproof.corruptions.geometry import select
from stormproof.datasets.dataset import SampleDataset
from stormproof.engine.api import run as run_it
from stormproof.metrics.fates import find_fates
from stormproof.report.charts import prepare_rows, spec_of
from stormproof.report.elements import Figure, View
from stormproof.report.imagery import Album, Imagery, RunPredictions
from stormproof.report.make import report
from stormproof.report.page import page
from stormproof.report.sections.severity import breaking_points
from stormproof.report.sentences import sentence, spoken, under
from stormproof.report.sources import run_scores
from stormproof.report.tables import bar_table, scores_by_severity
from stormproof.report.view import make_view
from stormproof.report.worst import (
    _before_moving,
    cards,
    each_image_once,
    measure_losses,
    telling,
    worst_first,
)
from stormproof.results.run import Run
from stormproof.results.scores import Replicates, Scores
from stormproof.results.worst import ImageLoss, image_measure


def steep(name: str = "steep", *, half_at: float = 2.0) -> Scores:
    """Scores that fall along straight lines: fog to half at a severity, snow to nothing at 5."""
    cells = {"clean": 0.4}
    cells |= {f"fog@{s}": 0.4 - 0.2 * s / half_at for s in (1, 2, 3)}
    cells |= {f"snow@{s}": 0.4 - 0.08 * s for s in range(1, 6)}
    return replace(toy_scores(name), per_condition={"AP": cells}, conditions=tuple(cells))


def figure(view: View, name: str) -> Figure:
    return next(each for each in view.figures() if each.id == name)


def test_breaking_points_are_where_the_lines_cross_half() -> None:
    found = breaking_points([steep(), steep("later", half_at=2.9)], "AP")
    rows = {(row["x"], row["series"]): row["y"] for row in found.rows}
    assert rows["fog", "steep"] == pytest.approx(2.0)
    assert rows["fog", "later"] == pytest.approx(2.9)
    assert rows["snow", "steep"] == pytest.approx(2.5)
    assert [row["x"] for row in found.rows] == ["fog", "fog", "snow", "snow"]  # what breaks first comes first
    assert not breaking_points([toy_scores("mild", clean=1.0)], "AP").rows
    mixed = breaking_points([steep(), steep("never", half_at=9)], "AP")
    assert {row["series"] for row in mixed.rows if row["x"] == "fog"} == {"steep"}
    assert "No bar: more than half is left" in mixed.note


def test_a_half_life_needs_two_severities_and_lies_between_them() -> None:
    cells = {"clean": 0.4, "fog@3": 0.1, "snow@2": 0.3, "snow@3": 0.1, "frost@1": 0.1}
    scores = replace(toy_scores("net"), per_condition={"AP": cells}, conditions=tuple(cells))
    rows = {row["x"]: row["y"] for row in breaking_points([scores], "AP").rows}
    assert rows == {"snow": pytest.approx(2.5)}


def test_breaking_points_have_intervals_where_scores_have() -> None:
    scores = steep()
    rng = np.random.default_rng(1)
    drawn = {
        text: np.concatenate([[value], value + rng.normal(0, 0.02, 200)])
        for text, value in scores.per_condition["AP"].items()
    }
    (row, _) = breaking_points([replace(scores, replicates=Replicates({"AP": drawn}, {}))], "AP").rows
    assert row["y"] == pytest.approx(2.0)
    assert 0 < row["low"] < row["y"] < row["high"] <= 3
    assert row["high"] - row["low"] > 0.1


def test_each_replicate_is_compared_with_half_of_its_own_clean_score() -> None:
    """Images that are all easier, or all harder, leave every share of the clean score as it is."""
    scores = steep()
    factors = np.concatenate([[0.55, 0.55], np.linspace(0.7, 1.3, 200)])
    drawn = {text: value * factors for text, value in scores.per_condition["AP"].items()}
    for row in breaking_points([replace(scores, replicates=Replicates({"AP": drawn}, {}))], "AP").rows:
        assert (row["low"], row["high"]) == pytest.approx((row["y"], row["y"]))


def test_the_difference_of_heat_maps_is_in_points() -> None:
    view = make_view([steep("a"), steep("b", half_at=2.9)])
    found = figure(view, "difference")
    cells = {(row["y"], row["x"]): row["v"] for row in found.rows}
    assert cells["fog", "2"] == pytest.approx(6.2)  # 26.2 less 20.0
    assert cells["clean", "mean"] == 0
    assert {row["panel"] for row in found.rows} == {"b"}
    assert "Positive is better than a" in found.note
    scale = spec_of(found)["spec"]["layer"][0]["encoding"]["color"]["scale"]
    assert (scale["domainMin"], scale["domainMax"]) == (-found.top, found.top)  # 0 is in the middle
    assert any(row["text"].startswith("+") for row in prepare_rows(found, found.rows))
    assert "difference" not in {each.id for each in make_view([steep("a")]).figures()}
    grid = spec_of(figure(view, "grid"))["spec"]["layer"][0]["encoding"]
    assert grid["x"]["sort"] == "ascending"  # 1 to 5, then the mean
    assert grid["color"]["scale"]["domainMax"] == 100


def test_sections_of_papers_come_last_and_folded() -> None:
    view = make_view([steep("a"), steep("b", half_at=2.9)])
    papers = [section.paper for section in view.sections]
    assert papers == sorted(papers)
    assert any(papers)
    text = page(view)
    folded = text.index('<details id="papers">')
    for section in view.sections:
        assert (text.index(f'<section id="{section.id}">') > folded) is section.paper
    assert text.index("Every run in a sentence") < text.index('id="grid"') < folded


def test_failures_of_different_corruptions_come_first(runs: dict[str, Path]) -> None:
    scores = run_scores(Run(runs["boxes"]))
    losses = [
        (scores, ImageLoss(image, condition, error, 0.1))
        for image, condition, error in (
            ("a", "fog@5", 1.0), ("b", "fog@5", 0.9), ("a", "snow@5", 0.85), ("c", "snow@3", 0.8),
            ("d", "fog@1", 0.1),
        )
    ]  # fmt: skip
    assert [(loss.image, loss.condition) for _, loss in telling(losses)] == [
        ("a", "fog@5"),
        ("c", "snow@3"),
        ("b", "fog@5"),
    ]
    real = worst_first([scores])
    assert {loss.image for _, loss in telling(real)} == {loss.image for _, loss in each_image_once(real)}


def test_distinguishes_lost_from_new_objects() -> None:
    def at(x: float, name: str = "car") -> dict[str, object]:
        return {"box": [x, 0, x + 10, 10], "name": name}

    truth = [at(0), at(20), at(40)]
    told = find_fates(truth, [at(1), at(21)], [at(0), at(80), at(20, "bus"), at(1)], clean=truth)
    assert told.words == ["kept", "lost", "missed"]
    assert told.new == [at(80), at(20, "bus")]
    assert told.summary == "2 of 3 objects found clean, 1 corrupted: 1 lost, 2 new."
    assert find_fates([], [], [], clean=[]).summary == ""
    # Labels that moved: what was found clean was found where the object was then.
    assert find_fates([at(30)], [at(0)], [], clean=[at(0)]).words == ["lost"]
    assert under("zoom_blur@3") == "zoom blur, severity 3"


def test_objects_that_left_the_image_are_not_looked_for_in_the_clean_one() -> None:
    objects = Instances([[0, 0, 10, 10], [20, 0, 30, 10], [50, 0, 60, 10]], [0, 0, 1], ids=[7, 8, 9])
    moved = replace(select(objects, np.array([0, 2])), boxes=np.array([[5.0, 0, 15, 10], [55, 0, 60, 10]]))
    left = _before_moving(Truth(objects), Truth(moved)).instances
    assert left is not None
    assert left.ids.tolist() == [7, 9]
    assert left.boxes[:, 0].tolist() == [0, 50]
    same = Truth(objects)
    assert _before_moving(same, same) is same


def test_the_error_of_an_image_is_by_the_measure_of_the_page(runs: dict[str, Path]) -> None:
    for name, measure in (("boxes", "AP"), ("masks", "mask AP"), ("maps", "mIoU")):
        scores = run_scores(Run(runs[name]))
        assert image_measure(scores) == measure == scores.headline
    assert image_measure(replace(scores, metric="E")) == "E"


def test_the_warning_about_few_images_names_no_run_where_all_have_few(runs: dict[str, Path]) -> None:
    both = [run_scores(Run(runs[name])) for name in ("boxes", "masks")]
    assert "Fewer than 100 images: a difference of a few points may be chance." in make_view(both).notices
    enough = make_view([replace(scores, images=100) for scores in both]).notices
    assert not any(notice.startswith("Fewer than") for notice in enough)
    mixed = make_view([both[0], replace(both[1], images=500)]).notices
    assert any(notice.startswith("Fewer than 100 images (") for notice in mixed)


@pytest.mark.parametrize("measure", ["AP", "E"])
def test_with_few_images_no_corruption_is_named_the_worst(runs: dict[str, Path], measure: str) -> None:
    scores = run_scores(Run(runs["boxes"]), interval=True)
    few, many = (sentence(replace(scores, images=images), measure) for images in (5, 500))
    assert few.endswith("Too few images (5) to say which corruption hurts most.")
    assert "hurts" in many
    assert "Too few" not in many


def test_a_run_without_intervals_is_described_on_its_images_only(runs: dict[str, Path]) -> None:
    said = sentence(replace(run_scores(Run(runs["boxes"])), images=500), "AP")
    assert "hurt" not in said
    assert "On these images, it stays above half of its clean score everywhere." in said


def test_the_fault_that_hurts_most_is_the_one_with_the_largest_error(runs: dict[str, Path]) -> None:
    scores = replace(run_scores(Run(runs["boxes"]), interval=True), images=500)
    errors, said = scores.by_corruption("E"), sentence(scores, "E")
    assert {f"CE/{name}" for name in errors} <= scores.spread("E").keys()
    worst = max(errors, key=errors.__getitem__)
    assert f"{spoken(worst).capitalize()} hurts most ({100 * errors[worst]:.1f} %)" in said


def test_the_text_of_show_names_the_severities_that_were_run() -> None:
    cells = {"clean": 0.4, "fog@1": 0.3, "fog@3": 0.2, "fog@5": 0.1, "snow@3": 0.3}
    scores = replace(toy_scores(), per_condition={"AP": cells}, conditions=tuple(cells))
    table = bar_table(scores, "AP")
    assert table.columns[:-1] == ("corruption", "1", "3", "5", "mean")
    assert [row[1] for row in table.rows] == ["30.0", "–"]


def test_what_hurts_most_comes_first_also_of_errors() -> None:
    cells = {"clean": 0.2, "fog@3": 0.3, "snow@3": 0.7, "frost@3": 0.5}
    scores = replace(toy_scores(), per_condition={"E": cells}, conditions=tuple(cells))
    table = bar_table(scores, "E")
    assert [(row[0], row[-1]) for row in table.rows] == [
        ("snow", "350 %"),
        ("frost", "250 %"),
        ("fog", "150 %"),
    ]
    assert table.columns[-1] == "of clean", "nothing is left of an error"
    assert bar_table(replace(scores, per_condition={"AP": cells}), "AP").columns[-1] == "left of clean"
    assert [*scores_by_severity(replace(scores, per_condition={"AP": cells}), "AP")] == [
        "fog",
        "frost",
        "snow",
    ]


def test_conditions_given_by_parameters_are_lines_of_their_own() -> None:
    cells = {"clean": 0.4, "haze[beta=0.02]": 0.3, "haze[beta=0.04]": 0.2, "fog@3": 0.1}
    lines = scores_by_severity(
        replace(toy_scores(), per_condition={"AP": cells}, conditions=tuple(cells)), "AP"
    )
    assert [*lines] == ["fog", "haze[beta=0.04]", "haze", "haze[beta=0.02]"]
    assert lines["haze"] == {"mean": pytest.approx(0.25)}


def test_a_run_that_lacks_a_clean_image_has_a_page(tmp_path: Path) -> None:
    samples = [
        Sample(f"{k}.png", np.full((48, 48, 3), 20 * k, np.uint8), Truth(Instances([[0, 0, 20, 20]], [0])))
        for k in range(4)
    ]
    data = SampleDataset.of(samples, name="yards", classes=("dog",))

    def dogs(images: list[np.ndarray]) -> list[Prediction]:  # type: ignore[type-arg]
        if any((image == 40).all() for image in images):
            raise RuntimeError("out of memory")
        return [Prediction([[0, 0, 20, 20]], [0.9], [0]) for _ in images]

    dogs.classes = ("dog",)  # type: ignore[attr-defined]
    with pytest.warns(UserWarning, match="1 cell failed"):
        run = run_it(dogs, data, out=tmp_path / "run", conditions="fog@1,fog@3", progress=False)
    scores = run_scores(run)
    assert scores.image_errors is not None
    assert [*scores.image_errors.by_condition] == ["fog@1", "fog@3"]
    assert scores.image_errors.rise("fog@1").tolist() == scores.image_errors.by_condition["fog@1"].tolist()
    text = report(run, out=tmp_path / "page.html", images=1).read_text()
    assert "is incomplete" in text


def test_a_model_of_label_maps_is_not_reported_to_miss_objects(tmp_path: Path) -> None:
    """The built-in street has objects as well; a segmenter does not look for them."""
    run = run_it(
        "builtin:street-plain", "world:test,size=256x160", limit=2, conditions="gaussian_noise@3",
        out=tmp_path / "run", engine="local", progress=False,
    )  # fmt: skip
    scores, scene = run.score(), Imagery(run.dataset, seed=0)
    shown = measure_losses(telling(worst_first([scores])), scene)
    assert shown
    made = cards(shown, [RunPredictions(scores, scene, frozenset(run.dataset.ids))], scene, Album(1 << 24))
    assert len(scene.objects(scene.sample(made[0]["image"]).truth, 1.0))
    assert [(card["counts"], card["objects"]) for card in made] == [("", [])] * len(shown)
