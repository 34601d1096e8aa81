"""Maps of two parameters: axes as written, the breaking line of a model whose line is known, its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.distances import near_ones, scenes
from stormproof.cli import app
from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, StormproofError
from stormproof.datasets.dataset import SampleDataset
from stormproof.engine.api import run as run_it
from stormproof.report.planes import map_charts, map_page
from stormproof.results.breaking import parse_requirement
from stormproof.results.map_file import read_map
from stormproof.results.maps import GRID, SURE, Plane, draw_map, level_segments, parse_map_axis
from stormproof.results.run import Run
from stormproof.results.surface import MET, MISSED, grid_places

pytest.importorskip("sklearn", reason="maps need scikit-learn")


def test_axes_are_read_with_their_units() -> None:
    haze = parse_map_axis("haze[visibility=50..1000]", "--x")
    assert (haze.title, haze.unit) == ("visibility (m)", "m")
    assert str(haze.condition(0)) == "haze[visibility=50]"
    assert str(haze.condition(1)) == "haze[visibility=1000]"
    assert haze.value(0.5) == pytest.approx((50 * 1000) ** 0.5, rel=1e-3)
    assert haze.place(haze.value(0.3)) == pytest.approx(0.3, abs=1e-3)
    rain = parse_map_axis("rain[rate=2..200, wiped=2]", "--x")
    assert rain.title == "rain (mm/h)"
    assert str(rain.condition(0)) == "rain[rate=2,wiped=2]"
    fog = parse_map_axis("fog@1..5", "--y")
    assert (fog.title, str(fog.condition(0.375))) == ("severity of fog", "fog@2.5")
    assert parse_map_axis("distance=5..80", "--y").title == "distance (m)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("haze", "write a parameter of a corruption with its range"),
        ("haze[visibility=0..100]", "above 0"),
        ("haze[visibility=100..100]", "different"),
        ("haze[visbility=50..100]", "visibility"),
        ("haze[visibility=a..100]", "write a parameter"),
        ("hase[visibility=50..100]", "haze"),
        ("distence=5..80", "distance"),
        ("rain[rate=2..2000]", "300"),
    ],
)
def test_a_wrong_axis_is_refused_with_a_fix(text: str, said: str) -> None:
    with pytest.raises(StormproofError, match=said):
        parse_map_axis(text, "--x")


def test_a_plane_without_meaning_is_refused() -> None:
    haze, night = (parse_map_axis(t, "--x") for t in ("haze[visibility=50..100]", "night[lux=1..9]"))
    distance = parse_map_axis("distance=5..80", "--y")
    with pytest.raises(InvalidOption, match="false positives have no distance"):
        Plane(haze, distance, "AP50", 0.4)
    with pytest.raises(InvalidOption, match="make the attribute of objects --y"):
        Plane(distance, haze, "found", 0.4)
    with pytest.raises(InvalidOption, match="vary two corruptions"):
        Plane(haze, haze, "AP50", 0.4)
    with pytest.raises(InvalidOption, match="such as AP50"):
        Plane(haze, night, "found", 0.4)
    composed = Plane(haze, night, "AP50", 0.4).condition((0.0, 1.0))
    assert str(composed) == "haze[visibility=50]+night[lux=9]"


def test_level_segments_follow_a_circle() -> None:
    x, y = np.meshgrid(np.linspace(0, 1, GRID), np.linspace(0, 1, GRID))
    made = level_segments(np.hypot(x - 0.5, y - 0.5).ravel(), 0.3)
    radii = np.hypot(made[:, 0] - 0.5, made[:, 1] - 0.5)
    assert np.abs(radii - 0.3).max() < 0.002
    length = np.hypot(made[:, 2] - made[:, 0], made[:, 3] - made[:, 1]).sum()
    assert length == pytest.approx(2 * np.pi * 0.3, rel=0.01)


def test_finds_the_known_line_of_a_simulated_model(tmp_path: Path) -> None:
    """The model finds what is darker than 40; an object is as bright as it is far. So brightness b loses
    what is farther than 40 − 255·b metres."""
    data, out = scenes(in_depth=False), tmp_path / "run"
    calls: list[int] = []

    def run(conditions: Sequence[Condition]) -> None:
        calls.append(len(conditions))
        run_it(model=near_ones, data=data, conditions=[*map(str, conditions)], out=out, engine="local")

    x, y = parse_map_axis("brightness[amount=0.01..0.1]", "--x"), parse_map_axis("distance=5..90", "--y")
    plane = Plane(x, y, "found", 0.5, ("person",))
    made = draw_map(plane, out=out, run=run, images=100, budget=500, replicates=60, data=data)
    assert sum(calls) <= 4
    assert made.inferences == 100 * (1 + sum(calls)), "clean images count too"
    assert made.inferences <= 500
    line = np.array(made.as_dict()["line"])
    expected = 40 - 255 * line[:, 0]
    assert np.abs(np.log(line[:, 1] / expected)).mean() < 0.25  # bins of ten metres
    places = grid_places()
    amount = np.array([x.value(u) for u in places[:, 0]])
    far = np.array([y.value(v) for v in places[:, 1]]) > 1.3 * (40 - 255 * amount)
    assert not (made.estimate.zones[far] == MET).any()
    assert (made.estimate.zones[far] == MISSED).any()
    page = map_page(made, "near_ones")
    assert made.words.startswith("A sketch: only 8 images, and fewer than 50 are not calibrated.")
    assert "A sketch: only 8" in page.replace("\u00a0", " ")
    assert "with confidence" not in page, "the nearest bin holds objects of eight images"
    assert "chance of 95 %" not in page
    assert made.as_dict()["level"] == ""
    assert json.loads(json.dumps(made.as_dict()))["x"]["unit"] == "of full scale"
    seen = [point.place[1] for point in made.points]
    drawn = made.segments(made.estimate.score, plane.sign * plane.threshold)
    assert len(drawn)
    assert drawn[:, [1, 3]].min() >= min(seen)
    assert drawn[:, [1, 3]].max() <= max(seen), "no line farther than any object"
    assert made.doubt, "fewer than fifty images decide a bin of distances"
    assert "with confidence" not in str(map_charts(made)), "in the legend and in tooltips"


def test_a_budget_below_the_first_conditions_is_refused(tmp_path: Path) -> None:
    x, y = parse_map_axis("haze[visibility=50..100]", "--x"), parse_map_axis("night[lux=1..9]", "--y")
    with pytest.raises(InvalidOption, match="give at least 1000"):
        draw_map(Plane(x, y, "AP50", 0.4), out=tmp_path, run=lambda _: None, images=100, budget=500)


def test_a_map_of_a_measure_that_is_not_calibrated_is_a_sketch(tmp_path: Path) -> None:
    """VOC07 AP50 declares no number of images; 60 images of AP50 are enough."""
    data = SampleDataset.of([scenes(in_depth=False)[k] for k in range(60)], classes=("person",))
    x, y = parse_map_axis("brightness@1..5", "--x"), parse_map_axis("contrast@1..5", "--y")
    for measure, doubt in (("AP50", ""), ("VOC07 AP50", "the interval of VOC07 AP50 is not calibrated")):

        def run(conditions: Sequence[Condition]) -> None:
            texts = [*map(str, conditions)]
            run_it(model=near_ones, data=data, conditions=texts, out=tmp_path / "run", engine="local")

        plane = Plane(x, y, measure, 0.2)
        made = draw_map(plane, out=tmp_path / "run", run=run, images=60, budget=600, replicates=50, data=data)
        assert made.doubt == doubt
        assert ("with confidence" in made.words) is (SURE in map_page(made, "near_ones")) is (not doubt)
        assert made.as_dict()["level"] == ("" if doubt else SURE)


@pytest.mark.parametrize("text", ["AP50>=.4.", "AP50>=e9", "AP50>=1e", "AP50>=-"])
def test_a_threshold_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="--require"):
        parse_requirement(text)


KEPT = {
    "x": {"name": "visibility", "title": "visibility (m)", "from": 50.0, "to": 1000.0, "scale": "log",
          "corruption": "haze"},
    "measure": "AP50", "threshold": 0.4, "higher": True, "level": SURE,
    "grid": {name: [0.5] * GRID**2 for name in ("score", "low", "high")},
}  # fmt: skip
KEPT["y"] = {**KEPT["x"], "name": "lux", "corruption": "night"}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"x": None}, "x is wrong"), ({"y": {**KEPT["x"], "from": 1000.0}}, "y goes from 1000 to 1000"),
        ({"grid": {"score": [], "low": [], "high": []}}, "grid.score is wrong"),
        ({"threshold": float("nan")}, "threshold is wrong"), ({"x": {**KEPT["x"], "from": 0.0}}, "x.from"),
    ],
)  # fmt: skip
def test_refuses_a_damaged_stored_map(tmp_path: Path, change: dict, said: str) -> None:
    (tmp_path / "map.json").write_text(json.dumps(KEPT))
    assert read_map(tmp_path)["threshold"] == 0.4
    (tmp_path / "map.json").write_text(json.dumps(KEPT | change))
    with pytest.raises(InvalidOption, match=said):
        read_map(tmp_path)


def test_refuses_a_stored_map_of_another_model(tmp_path: Path) -> None:
    data = SampleDataset.of([scenes(in_depth=False)[k] for k in range(2)], classes=("person",))

    def other(images):
        return near_ones(images)

    other.classes = ("person",)
    for name, model in (("mine", near_ones), ("other", other)):
        run_it(model=model, data=data, conditions="clean", out=tmp_path / name, engine="local")
        (tmp_path / name / "map.json").write_text(json.dumps(KEPT))
    mine = Run(tmp_path / "mine", data=data)
    assert read_map(tmp_path / "mine", mine.record)
    with pytest.raises(InvalidOption, match="is of another model than the run"):
        read_map(tmp_path / "other", mine.record)


def test_a_model_needs_data_and_a_folder() -> None:
    words = ["map", "mine.py:detect", "--x", "fog@1..5", "--y", "distance=5..80", "--require", "found>=0.5"]
    said = str(CliRunner().invoke(app, words).exception)
    assert said == "'mine.py:detect' is no run folder; for a model, give --data and --out too."


def test_a_map_of_a_run_has_the_seed_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "run.yaml").write_text("{model: builtin:street-grid, data: 'world:val,count=2', seed: 3}")
    asked: list[dict] = []
    monkeypatch.setattr("stormproof.cli.map.runner", lambda settings: asked.append(settings))
    words = ["map", str(tmp_path), "--x", "fog@1..5", "--y", "snow@1..5", "--require", "AP50>=0.5"]
    for seed in ([], ["--seed", "5"], ["--seed", "0"]):
        CliRunner().invoke(app, [*words, *seed, "--budget", "1"])
    assert [settings["seed"] for settings in asked] == [3, 5, 0]
