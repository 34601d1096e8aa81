"""Every figure of a small run, from its rows: pycocotools and plain loops must give the same marks.

A figure that no test here covers fails: write down what it should show when you add one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from scipy.optimize import nnls

from helpers.colour_models import MODELS
from helpers.from_rows import FLAWS, Rows, mean
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.report.comparison import compare_view
from stormproof.report.elements import View
from stormproof.report.sections import overview
from stormproof.report.view import make_view
from stormproof.results.run import Run
from stormproof.results.weights import half_weights

CLASSES = ("person", "dog")
RUNS = ("keen", "calm", "wary")
GRADED = ("gaussian_noise", "fog", "contrast", "geometric_distortion")
GROUP = {
    "gaussian_noise": "noise",
    "fog": "weather",
    "contrast": "digital",
    "geometric_distortion": "geometric",
}
SIMPLE = ("gaussian_blur[sigma=1]", "gaussian_blur[sigma=2]")
TARGET = "defocus[focus=2,kappa=2]"
LOOSE = (*SIMPLE, TARGET)
SERIES = (*GRADED, "gaussian_blur", "defocus")  # conditions without a severity count together
HALVES = 50
Marks = dict[tuple[Any, ...], Any]


def write_rectangles(folder: Path, images: int = 8) -> str:
    """A red and a blue rectangle on grey texture in every image, and depth that grows from left to right."""
    for name in ("images", "depth"):
        (folder / name).mkdir(parents=True)
    rng = np.random.default_rng(5)
    records, annotations = [], []
    for i in range(images):
        pixels = np.repeat(rng.integers(90, 150, (48, 64, 1)), 3, axis=2).astype(np.uint8)
        records.append({"id": i + 1, "file_name": f"{i}.png", "height": 48, "width": 64})
        for k, colour in enumerate(((210, 60, 50), (40, 80, 200))):
            width, height = (int(v) for v in rng.integers(10, 24, 2))
            x, y = int(rng.integers(0, 32 - width)) + 32 * k, int(rng.integers(0, 48 - height))
            faint = rng.uniform(0.3, 1)
            area = pixels[y : y + height, x : x + width]
            area[...] = (faint * np.array(colour) + (1 - faint) * area).astype(np.uint8)
            annotations.append({
                "id": 2 * i + k + 1, "image_id": i + 1, "category_id": k + 1, "iscrowd": 0,
                "bbox": [x, y, width, height], "area": width * height,
            })  # fmt: skip
        PIL.Image.fromarray(pixels).save(folder / "images" / f"{i}.png")
        np.save(
            folder / "depth" / f"{i + 1}.npy", np.linspace(1.5, 30, 64, dtype=np.float32)[None].repeat(48, 0)
        )
    categories = [{"id": k + 1, "name": name} for k, name in enumerate(CLASSES)]
    content = {"images": records, "annotations": annotations, "categories": categories}
    (folder / "instances.json").write_text(json.dumps(content))
    return f"coco:{folder / 'instances.json'},images={folder / 'images'},depth={folder / 'depth'}"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three toy detectors on eight images."""
    folder = tmp_path_factory.mktemp("figures")
    data = write_rectangles(folder / "scene")
    for model in RUNS:
        settings = {
            "model": f"{MODELS}:{model}", "data": data, "conditions": [*GRADED, *LOOSE], "engine": "local",
            "out": str(folder / model),
        }  # fmt: skip
        run(make_config(settings))
    return {model: folder / model for model in RUNS}


@pytest.fixture(scope="module")
def rows(folders: dict[str, Path]) -> dict[str, Rows]:
    return {name: Rows(folder, CLASSES) for name, folder in folders.items()}


@pytest.fixture(scope="module")
def scored(folders: dict[str, Path]) -> dict[str, Any]:
    return {name: Run(folder).score(replicates=HALVES) for name, folder in folders.items()}


@pytest.fixture(scope="module")
def views(scored: dict[str, Any]) -> list[View]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overview, "FEW_OBJECTS", 1)  # the images of this test have few
        alone = make_view([scored["keen"]])
        return [make_view(list(scored.values())), compare_view(scored["keen"], scored["wary"]), alone]


@pytest.fixture(scope="module")
def cells(rows: dict[str, Rows]) -> dict[str, dict[str, dict[str, float]]]:
    """Measure → run → condition → value, from the rows."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, own in rows.items():
        for text in own.by_condition:
            numbers = {**own.precision(text), **own.errors(text), "ADR": own.adr(text)}
            for measure, value in numbers.items():
                found.setdefault(measure, {}).setdefault(name, {})[text] = value
    return found


def marks(view: View, figure: str, *keys: str, value: str = "y") -> Marks:
    """A figure's marks by some of their keys."""
    drawn = next(f for f in view.figures() if f.id == figure).rows
    found = {tuple(row.get(key) for key in keys): row[value] for row in drawn}
    assert len(found) == len(drawn)
    return found


CHECKED: set[str] = set()


def of(*figures: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare which figures a test covers."""
    CHECKED.update(figures)
    return lambda test: test


def kept(row: dict[str, float], names: tuple[str, ...]) -> float:
    return 100 * float(np.mean([mean(row, name) for name in names])) / row["clean"]


@of("kept")
def test_the_share_kept_by_group_has_its_interval(views, cells, rows, scored) -> None:
    drawn = {(row["x"], row["series"]): row for row in views[0].first.rows}
    for run_name, row in cells["AP"].items():
        assert drawn["all corruptions", run_name]["y"] == pytest.approx(_mean_kept(row))
        for name, group in GROUP.items():
            assert drawn[group, run_name]["y"] == pytest.approx(kept(row, (name,)))
    own = rows["keen"]
    halves = half_weights(own.images, replicates=HALVES).astype(bool)
    spread = []
    for half in halves:
        chosen = [name for name, inside in zip(own.images, half, strict=True) if inside]
        row = {
            text: own.precision(text, chosen)["AP"] for text in ("clean", *(f"fog@{s}" for s in range(1, 6)))
        }
        spread.append(kept(row, ("fog",)))
    bar = drawn["weather", "keen"]
    reach = 2.364624 * np.std(spread, ddof=1)  # Student's t of eight images
    assert bar["high"] - bar["y"] == pytest.approx(reach)
    assert bar["y"] - bar["low"] >= reach  # and what a score on few images is too high


def _mean_kept(row: dict[str, float]) -> float:
    held = [value for text, value in row.items() if text != "clean"]
    return 100 * float(np.mean(held)) / row["clean"]


@of("grid", "conditions")
def test_every_cell_of_the_grid_is_shown_absolute_and_relative(views, cells) -> None:
    grid = marks(views[0], "grid", "pick", "panel", "y", "x", value="v")
    loose = marks(views[0], "conditions", "pick", "x", "y", value="v")
    for name, row in cells["AP"].items():
        for corruption in GRADED:
            for s in range(1, 6):
                value = row[f"{corruption}@{s}"]
                assert grid[("absolute",), name, corruption, str(s)] == pytest.approx(100 * value)
                relative = grid[("relative to clean",), name, corruption, str(s)]
                assert relative == pytest.approx(100 * value / row["clean"])
            middle = grid[("absolute",), name, corruption, "mean"]
            assert middle == pytest.approx(100 * mean(row, corruption))
        for text in (*LOOSE, "clean"):
            assert loose[("absolute",), name, text] == pytest.approx(100 * row[text])
            assert loose[("relative to clean",), name, text] == pytest.approx(100 * row[text] / row["clean"])
    assert len(grid) == 2 * 3 * (4 * 6 + 1)
    assert len(loose) == 2 * 3 * 4


@of("corruptions", "groups-michaelis", "groups-kamann")
def test_curves_show_the_mean_of_each_severity(views, cells) -> None:
    curves = marks(views[0], "corruptions", "series", "panel", "x")
    groups = marks(views[0], "groups-kamann", "series", "panel", "x")
    for name, row in cells["AP"].items():
        for corruption in GRADED:
            assert curves[name, corruption, 0.0] == pytest.approx(100 * row["clean"])
            for s in range(1, 6):
                assert curves[name, corruption, float(s)] == pytest.approx(100 * row[f"{corruption}@{s}"])
        for s in range(1, 6):  # the one group that is held whole
            value = groups[name, "geometric", float(s)]
            assert value == pytest.approx(100 * row[f"geometric_distortion@{s}"])
        assert groups[name, "geometric", 0.0] == pytest.approx(100 * row["clean"])
    for paper in ("michaelis", "kamann"):  # noise at all severities, or the curve would jump at 4
        every = marks(views[0], f"groups-{paper}", "series", "panel", "x")
        at_4 = 100 * np.mean([cells["AP"]["calm"][f"{name}@4"] for name in GRADED])
        assert every["calm", "all corruptions", 4.0] == pytest.approx(at_4)


@of("rmse", "snr")
def test_the_share_kept_is_plotted_over_rmse_and_snr(views, cells, rows) -> None:
    row, own = cells["AP"]["keen"], rows["keen"]
    by_rmse = {
        (r["label"], r["panel"]): r for r in next(f for f in views[0].figures() if f.id == "rmse").rows
    }
    for corruption in GRADED:
        levels = [own.quality(f"{corruption}@{s}", "rmse") for s in range(1, 6)]
        mark = by_rmse[corruption, "keen"]
        assert (mark["x"], mark["y"]) == pytest.approx((np.mean(levels), kept(row, (corruption,))))
        assert mark["series"] == GROUP[corruption]
    by_snr = next(f for f in views[2].figures() if f.id == "snr").rows
    found = {(r["series"], round(r["x"], 6)): r["y"] for r in by_snr}
    for corruption in GRADED:
        for s in range(1, 6):
            text = f"{corruption}@{s}"
            snr = round(own.quality(text, "snr"), 6)
            assert found[corruption, snr] == pytest.approx(100 * row[text])


@of("classes")
def test_bars_show_the_scores_of_classes(views, cells) -> None:
    found = marks(views[0], "classes", "pick", "x", "y", value="v")
    for name in CLASSES:
        for run_name, row in cells[name].items():
            for corruption in (*GRADED, *LOOSE):
                assert found[(run_name,), corruption, name] == pytest.approx(kept(row, (corruption,)))


def degraded(row: dict[str, float], name: str) -> float:
    """1 − score; of noise the first three severities."""
    if name != "gaussian_noise":
        return 1 - mean(row, name)
    return 1 - float(np.mean([row[f"{name}@{s}"] for s in (1, 2, 3)]))


@of("cd-clean", "cd-categories", "cd-corruptions", "radar")
def test_degradation_is_relative_to_the_first_run(views, cells) -> None:
    base = cells["AP"]["keen"]
    clean = marks(views[0], "cd-clean", "panel", "series")
    places = marks(views[0], "cd-clean", "panel", "series", value="x")
    single = marks(views[0], "cd-corruptions", "panel", "series", "x")
    bars = marks(views[0], "cd-categories", "panel", "series", "x")
    radar = marks(views[0], "radar", "series", "x")
    for name, row in cells["AP"].items():
        ratios: dict[str, dict[str, float]] = {"CD": {}, "rCD": {}}
        for corruption in SERIES:
            mine, theirs = degraded(row, corruption), degraded(base, corruption)
            ratios["CD"][corruption] = 100 * mine / theirs
            lost = theirs - (1 - base["clean"])
            ratios["rCD"][corruption] = 100 * (mine - (1 - row["clean"])) / lost if lost >= 0.01 else np.nan
        for panel, values in ratios.items():
            known = [value for value in values.values() if not np.isnan(value)]
            assert clean[panel, name] == pytest.approx(np.mean(known))
            assert places[panel, name] == pytest.approx(100 * row["clean"])
            for corruption, value in values.items():
                assert single.get((panel, name, corruption), np.nan) == pytest.approx(value, nan_ok=True)
            for corruption, category in (*GROUP.items(), ("gaussian_blur", "blur")):  # one corruption each
                expected = values[corruption]
                assert bars.get((panel, name, category), np.nan) == pytest.approx(expected, nan_ok=True)
        assert radar[name, "clean"] == pytest.approx(100 * row["clean"])
        for corruption, category in (*GROUP.items(), ("gaussian_blur", "blur")):
            assert radar[name, category] == pytest.approx(100 * mean(row, corruption))


@of("map-mce", "flaws")
def test_errors_of_objects_equal_a_plain_count(views, cells) -> None:
    points = marks(views[0], "map-mce", "series")
    clean = marks(views[0], "map-mce", "series", value="x")
    flaws = marks(views[0], "flaws", "pick", "x", "series")
    for name, row in cells["E"].items():
        assert clean[(name,)] == pytest.approx(100 * cells["AP"][name]["clean"])
        held = [value for text, value in row.items() if text != "clean"]
        assert points[(name,)] == pytest.approx(100 * np.mean(held))
        for corruption in ("clean", *GRADED):
            texts = ["clean"] if corruption == "clean" else [f"{corruption}@{s}" for s in range(1, 6)]
            counts = {flaw: sum(cells[flaw][name][text] for text in texts) for flaw in FLAWS}
            for flaw, count in counts.items():
                share = 100 * count / sum(counts.values())
                assert flaws[(corruption,), name, flaw] == pytest.approx(share)


@of("roc")
def test_detection_rates_equal_a_plain_count(views, rows, cells, scored) -> None:
    own = rows["wary"]
    drawn = [r for r in next(f for f in views[0].figures() if f.id == "roc").rows if r["series"] == "wary"]
    for pick, text in ((("clean", ""), "clean"), (("fog", "4"), "fog@4")):
        held = [r for r in drawn if r["pick"] == pick]
        rates, false = own.rates(text, 0.5)
        dots = [(r["x"], r["y"]) for r in held if r.get("mark")]
        # A logarithmic axis has no 0.
        expected = [(x, 100 * y) for x, y in zip(false, rates, strict=True) if x > 0]
        assert dots == [pytest.approx(pair) for pair in expected]
        judged, count = own.people(text, 0.5)
        curve = set()
        for threshold in {score for score, _ in judged}:
            hits = sum(score >= threshold and hit for score, hit in judged) / count
            errors = sum(score >= threshold and not hit for score, hit in judged) / len(own.images)
            curve.add((round(errors, 9), round(100 * hits, 9)))
        assert {(round(r["x"], 9), round(r["y"], 9)) for r in held if not r.get("mark")} <= curve
    for name, row in cells["ADR"].items():
        assert scored[name].per_condition["ADR"] == pytest.approx(row)


@of("reliability")
def test_reliability_bins_equal_a_plain_count(views, rows, scored) -> None:
    drawn = next(f for f in views[0].figures() if f.id == "reliability").rows
    for name, own in rows.items():
        for series, text in (("clean", "clean"), ("3", "fog@3")):
            expected = own.reliability(text)
            marks = [r for r in drawn if (r["pick"], r["panel"], r["series"]) == ((name,), "fog", series)]
            shown = [(r["x"], r["y"]) for r in marks]
            assert shown == [pytest.approx((100 * x, 100 * y)) for x, y, _ in expected.values()]
            gap = sum(n * abs(x - y) for x, y, n in expected.values())
            count = sum(n for _, _, n in expected.values())
            error = gap / count if count else np.nan
            assert scored[name].score("D-ECE", text) == pytest.approx(error, nan_ok=True)
    assert sum(map(len, (own.reliability("clean") for own in rows.values()))) > 3


@of("prediction", "weights")
def test_defocus_is_predicted_from_blur(views, cells) -> None:
    left = {n: np.array([row[t] / row["clean"] for t in LOOSE]) for n, row in cells["ADR"].items()}
    points = {r["series"]: r for r in next(f for f in views[0].figures() if f.id == "prediction").rows}
    for name, own in left.items():
        others = np.array([row for other, row in left.items() if other != name])
        weights, _ = nnls(others[:, :2], others[:, 2])
        assert points[name]["x"] == pytest.approx(100 * own[2])
        assert points[name]["y"] == pytest.approx(100 * own[:2] @ weights)
    every = np.array(list(left.values()))
    overall, _ = nnls(every[:, :2], every[:, 2])
    shown = marks(views[0], "weights", "x", "y", value="v")
    assert [shown[text, TARGET] for text in SIMPLE] == pytest.approx(overall.tolist())


@of("carry-over")
def test_each_run_is_plotted_clean_against_corrupted(views, cells) -> None:
    under, clean = (marks(views[0], "carry-over", "series", value=key) for key in ("y", "x"))
    for name, row in cells["AP"].items():
        held = [value for text, value in row.items() if text != "clean"]
        assert under[(name,)] == pytest.approx(100 * np.mean(held))
        assert clean[(name,)] == pytest.approx(100 * row["clean"])


def printed(score: float) -> float:
    return round(100 * score, 1)


@of("change", "change-severity")
def test_changes_between_two_runs_equal_their_difference(views, cells) -> None:
    old, new = cells["AP"]["keen"], cells["AP"]["wary"]
    bars, lines = marks(views[1], "change", "x"), marks(views[1], "change-severity", "series", "x")
    assert bars[("clean",)] == pytest.approx(printed(new["clean"]) - printed(old["clean"]))
    for corruption in SERIES:
        change = printed(mean(new, corruption)) - printed(mean(old, corruption))
        assert bars[(corruption,)] == pytest.approx(change)
    for corruption in GRADED:
        for s in range(1, 6):
            text = f"{corruption}@{s}"
            assert lines[corruption, s] == pytest.approx(100 * (new[text] - old[text]))


# Figures whose numbers have tests of their own.
ELSEWHERE = {
    "error-types": "test_error_types.py", "alpha": "test_view.py",
    "spaces": "test_view.py", "distances": "test_view.py",
    "breaking": "test_first_screen.py", "difference": "test_first_screen.py",
}  # fmt: skip


def test_every_figure_is_covered(views) -> None:
    drawn = {figure.id for view in views for figure in view.figures()}
    assert drawn - {*ELSEWHERE} == CHECKED
