"""Slices: each scores as its images alone would, and is compared over the classes that it shows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.runs import Make
from stormproof.cli import app
from stormproof.core.errors import DatasetError, InvalidOption, UnknownName
from stormproof.core.sample import Instances, Prediction, Sample, Truth
from stormproof.datasets.attributes import brightness, contrast, read_attribute, sharpness
from stormproof.datasets.dataset import SampleDataset
from stormproof.engine.api import run as run_it
from stormproof.metrics.coco import box_numbers, coco_scored
from stormproof.metrics.inputs import Objects
from stormproof.metrics.metric import mean_of_known, measures
from stormproof.report.sections.slices import slice_section
from stormproof.results.interval import LEADING, draws, unseen_share
from stormproof.results.run import Run
from stormproof.results.scoring import iter_inputs
from stormproof.results.slices import _chance


def write_table(path: Path, run: Path) -> Path:
    ids = Run(run).ids
    lines = [f"{name},{'rain' if k % 3 == 0 else 'dry'},{k * 1.5}" for k, name in enumerate(ids)]
    path.write_text("\n".join(["id,weather,wind", *lines]) + "\n")
    return path


def test_a_slice_scores_as_its_images_alone(make: Make, tmp_path: Path) -> None:
    folder = make("contrast_boxes")
    run = Run(folder)
    found = run.slices(f"{write_table(tmp_path / 'a.csv', folder)}:weather", replicates=50)
    assert [*found] == ["dry", "rain"]
    assert found.measure == "AP"
    for name, places in (("rain", [0, 3, 6]), ("dry", [1, 2, 4, 5, 7])):
        assert found[name].images == len(places)
        for text, cell in iter_inputs(run, None, ("clean", "fog@3")):
            assert isinstance(cell, Objects)
            alone = cell.of_images(np.array(places))
            expected = box_numbers(alone.truth, alone.named_boxes)
            for measure in ("AP", "AP50", "AR100"):
                assert found[name].per_condition[measure][text] == pytest.approx(expected[measure], abs=1e-12)
            optimism = mean_of_known(coco_scored(alone.boxes, np.ones((2, len(places)))).optimism["AP"])
            expected_row = expected["AP"] - min(float(optimism), 0.9 * expected["AP"])
            assert found[name].spread("AP")[text][0] == pytest.approx(expected_row, abs=1e-12)
    assert found.whole.per_condition["AP"] == run.score().per_condition["AP"]


def test_the_interval_of_a_slice_comes_from_its_images_alone(make: Make, tmp_path: Path) -> None:
    folder = make("contrast_boxes")
    run = Run(folder)
    found = run.slices(f"{write_table(tmp_path / 'a.csv', folder)}:weather")
    every = run.score(interval=True)
    assert found.whole.intervals("AP") == every.intervals("AP")
    places = np.array([0, 3, 6])
    for text, cell in iter_inputs(run, None, ("clean", "fog@3")):
        assert isinstance(cell, Objects)
        alone = coco_scored(cell.of_images(places).boxes, np.ones((2, 3)))
        optimism = float(np.nanmean(alone.optimism["AP"]))
        assert optimism > 0
        expected = draws(alone.numbers["AP"], optimism, clean=text == "clean")[:2]
        assert found["rain"].spread("AP")[text][:2] == pytest.approx(expected)


def test_slices_of_label_maps_are_scored_by_their_pixels(make: Make) -> None:
    run = Run(make("thresholds", "street"))
    found = run.slices("brightness", replicates=50)
    assert found.measure == "mIoU"
    assert [*found] == ["low", "middle", "high"]
    assert [found[name].images for name in found] == [2, 2, 2]
    dataset = run.dataset
    order = np.argsort([brightness(dataset[i].image) for i in range(6)])
    for text, cell in iter_inputs(run, None, ("fog@2",)):
        counts = cell.counts(np.isin(np.arange(6), order[:2])[None])  # type: ignore[union-attr]
        from stormproof.metrics.semantic import iou_of

        assert found["low"].per_condition["mIoU"][text] == pytest.approx(
            float(np.nanmean(iou_of(counts[0, :3, :3])))
        )


def colour_boxes(images: list[np.ndarray]) -> list[Prediction]:  # type: ignore[type-arg]
    """Finds the dog always, the cat only where the image is bright."""
    return [
        Prediction([[0, 0, 20, 20], [30, 30, 50, 50]], [0.9, 0.9 if image.mean() > 100 else 0.0], [0, 1])
        for image in images
    ]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Dark images show dogs only, bright ones cats, too, which are found there and nowhere else."""
    samples = []
    for k in range(12):
        bright = k % 2 == 0
        image = np.full((64, 64, 3), 200 if bright else 40, np.uint8)
        image[::2, k] = 0
        boxes = [[0, 0, 20, 20], [30, 30, 50, 50]] if bright else [[0, 0, 20, 20]]
        samples.append(Sample(f"i{k}", image, Truth(Instances(boxes, [0, 1][: len(boxes)]))))
    data = SampleDataset.of(samples, classes=("dog", "cat"))
    folder = tmp_path_factory.mktemp("mixed") / "run"
    model = colour_boxes
    model.classes = ("dog", "cat")  # type: ignore[attr-defined]
    run_it(model=model, data=data, conditions="brightness@1", out=folder, engine="local")
    return Run(folder, data=data)


def test_a_class_that_a_slice_lacks_is_no_difference(mixed: Run, tmp_path: Path) -> None:
    table = tmp_path / "light.csv"
    table.write_text("id,light\n" + "".join(f"i{k},{'day' if k % 2 == 0 else 'night'}\n" for k in range(12)))
    found = mixed.slices(str(table), replicates=60)
    assert found["night"].classes == ("dog",)
    assert found["day"].classes == ("dog", "cat")
    # Over dogs alone, night is like all images.
    assert found["night"].score("AP") == pytest.approx(1.0)
    assert found.differences("P")["night"].interval.estimate == pytest.approx(0.0)
    assert not found.differences("P")["night"].clear
    # So it is for every mean over classes: the cats that night lacks are found late or not at all.
    for measure in ("AR100", "oLRP", "LRP FN", "LaECE0", "VOC07 AP50", "dAP Cls", "dAP Bkg", "dAP FP"):
        found = mixed.slices(str(table), measure=measure, replicates=50)
        assert found["night"].classes == ("dog",), measure
        assert found.differences("clean")["night"].interval.estimate == pytest.approx(0.0), measure
    counts = mixed.slices(str(table), measure="FP per image", replicates=50).table()
    assert counts.title == "FP per image by light"  # not in %
    assert [row[3] for row in counts.rows] == pytest.approx([0.5, 0.0, 1.0])  # cats that night lacks


def early_cats(images: list[np.ndarray]) -> list[Prediction]:  # type: ignore[type-arg]
    """Finds every dog; is surest of cats by night, where there are none, and finds some of those by day."""
    found = []
    for image in images:
        seen = image.mean() < 100 or image[0, :6].min() == 0
        cat = [[30, 30, 50, 48]] if seen else []
        sure = 0.95 if image.mean() < 100 else 0.6
        found.append(Prediction([[0, 0, 20, 20], *cat], [0.9, *[sure] * len(cat)], [0, 1][: 1 + len(cat)]))
    return found


early_cats.classes = ("dog", "cat")  # type: ignore[attr-defined]


def test_a_slice_is_compared_over_its_own_classes_alone(mixed: Run, tmp_path: Path) -> None:
    """Dogs are found alike by day and night; that cats are not says nothing about the nights without cats."""
    run_it(
        model=early_cats, data=mixed.dataset, conditions="brightness@1", out=tmp_path / "run", engine="local"
    )
    run = Run(tmp_path / "run", data=mixed.dataset)
    table = tmp_path / "light.csv"
    table.write_text("id,light\n" + "".join(f"i{k},{'day' if k % 2 == 0 else 'night'}\n" for k in range(12)))
    for measure in ("AP", "oLRP", "LaECE0", "dAP Miss"):
        found = run.slices(str(table), measure=measure, replicates=50)
        dogs = found["night"].score(measure)
        assert abs(found.whole.score(measure) - dogs) > 0.01, measure
        baseline = found.baselines["night"]
        assert baseline.score(measure) == pytest.approx(dogs), measure
        assert baseline.spread(measure)["clean"][LEADING:] == pytest.approx(dogs), measure
        assert found.differences("clean")["night"].interval.estimate == pytest.approx(0.0), measure
        rows = {str(row[0]): row for row in found.table().rows}
        assert [rows[name][2] for name in ("all images", "day", "night")] == [2, 2, 1], measure
    compared = run.slices(str(table), replicates=50)
    day, night = (dict(zip(compared.table().columns, row, strict=True)) for row in compared.table().rows[1:])
    assert night["P against all"] == pytest.approx(0.0)
    expected = 100 * (compared["day"].score("AP") - compared.baselines["day"].score("AP"))
    assert day["P against all"] == pytest.approx(expected)
    assert expected > 1


@pytest.mark.parametrize(
    ("p", "told"), [(0.0009, "< 0.001"), (0.001, "0.001"), (0.0094, "0.009"), (0.5, "0.500"), (np.nan, "?")]
)
def test_a_probability_is_printed_to_a_thousandth(p: float, told: str) -> None:
    assert _chance(p) == told


def test_frames_of_a_clip_count_once(mixed: Run, tmp_path: Path) -> None:
    """Their intervals have as many degrees of freedom as there are clips, less one."""
    table = tmp_path / "light.csv"
    table.write_text("id,light\n" + "".join(f"i{k},{'day' if k % 2 == 0 else 'night'}\n" for k in range(12)))
    run = Run(mixed.folder, data=mixed.dataset)
    run.__dict__["units"] = tuple(f"clip {k % 6}" for k in range(12))  # three by day, three at night
    found = run.slices(str(table), replicates=50)
    assert (found["night"].images, found["night"].units, found.whole.units) == (6, 3, 6)
    assert found.differences("P")["night"].interval.images == 3
    rates = run.detection_rates("size", replicates=50)
    assert [each.units for each in rates.bins] == [6]
    assert rates.interval("clean", 0).images == 6


def test_holm_counts_the_slices(make: Make) -> None:
    folder = make("contrast_boxes")
    found = Run(folder).slices("contrast", replicates=50)
    differences = found.differences("P")
    assert {*differences} == {*found}
    raw = sorted(each.p for each in differences.values())
    assert min(each.holm for each in differences.values()) == pytest.approx(min(1.0, 3 * raw[0]))
    assert all(each.interval.images == found[name].images for name, each in differences.items())


def test_a_difference_of_counts_that_never_vary_may_exceed_one(make: Make) -> None:
    found = Run(make("nothing")).slices("contrast", measure="FP per image", replicates=50)
    assert found.differences("P")
    for name, each in found.differences("P").items():
        most = measures()["FP per image"].most * unseen_share(found[name].images or 0)
        assert each.interval.high == pytest.approx(most)
        assert most > 1


def test_slices_by_attributes_of_files_pixels_and_objects(make: Make, tmp_path: Path) -> None:
    run = Run(make("contrast_boxes"))
    dataset = run.dataset
    path = write_table(tmp_path / "a.csv", run.folder)
    assert read_attribute(dataset, f"{path}:weather", [0, 1, 3]).values == ("rain", "dry", "rain")
    wind = read_attribute(dataset, f"{path}:wind", run.readable)
    assert wind.slices == ("low", "middle", "high")
    assert wind.note == "Tertiles of wind: low up to 3.5, middle up to 7, high above."
    half = tmp_path / "half.csv"
    half.write_text("id,road\n001.png,wet\n")
    some = read_attribute(dataset, str(half), run.readable)
    assert some.slices == ("wet",)
    assert sum(value is not None for value in some.values) == 1
    assert some.note == "7 images without road left out."
    assert read_attribute(dataset, "count", run.readable).slices == ("low",)  # two objects everywhere

    with pytest.raises(DatasetError, match="has 2 attributes; name one"):
        read_attribute(dataset, str(path), run.readable)
    with pytest.raises(UnknownName, match="weather"):
        read_attribute(dataset, f"{path}:wether", run.readable)
    with pytest.raises(UnknownName, match="brightness"):
        read_attribute(dataset, "brigtness", run.readable)
    (tmp_path / "none.csv").write_text("id,road\nother,wet\n")
    with pytest.raises(DatasetError, match="no row for any"):
        read_attribute(dataset, str(tmp_path / "none.csv"), run.readable)
    (tmp_path / "torn.csv").write_text("id,road\n001.png\n")
    with pytest.raises(DatasetError, match="line 2"):
        read_attribute(dataset, str(tmp_path / "torn.csv"), run.readable)
    (tmp_path / "twice.csv").write_text("id,road\n001.png,wet\n001.png,wet\n001.png,dry\n")
    with pytest.raises(DatasetError, match=r"line 4: gives '001\.png' another road than before"):
        read_attribute(dataset, str(tmp_path / "twice.csv"), run.readable)
    (tmp_path / "many.csv").write_text("id,n\n" + "".join(f"{k:03d}.png,v{k}\n" for k in range(100)))
    many = SampleDataset.of([Sample(f"{k:03d}.png", np.zeros((8, 8, 3), np.uint8)) for k in range(100)])
    with pytest.raises(InvalidOption, match="100 different values"):
        read_attribute(many, str(tmp_path / "many.csv"), range(100))


def test_brightness_contrast_and_sharpness_by_hand() -> None:
    flat = np.full((32, 32, 3), 90, np.uint8)
    checked = flat.copy()
    checked[::2, ::2] = 200
    assert (brightness(flat), contrast(flat), sharpness(flat)) == (90.0, 0.0, 0.0)
    assert contrast(checked) == pytest.approx(110 * np.sqrt(3) / 4)
    assert sharpness(checked) > 1000


def test_the_command_prints_slices(make: Make, tmp_path: Path) -> None:
    folder = make("contrast_boxes")
    path = write_table(tmp_path / "a.csv", folder)
    asked = ["score", str(folder), "--by", f"{path}:weather", "--replicates", "50"]
    shown = CliRunner().invoke(app, asked)
    assert shown.exit_code == 0, shown.output
    assert "AP by weather" in shown.output
    assert "rain" in shown.output
    answer = CliRunner().invoke(app, [*asked, "--json"])
    content = json.loads(answer.stdout)
    assert {*content["slices"]} == {"rain", "dry"}
    rain = content["slices"]["rain"]
    assert rain["images"] == 3
    assert rain["scores"]["clean"] == Run(folder).slices(f"{path}:weather", replicates=50)["rain"].score("AP")
    assert 0 <= rain["against_all"]["P"]["holm"] <= 1
    rows = CliRunner().invoke(app, [*asked, "--csv"]).stdout.splitlines()
    assert rows[0].startswith("slice,images,classes,P")
    assert len(rows) == 4


def test_a_report_shows_the_slices(make: Make, tmp_path: Path) -> None:
    folder = make("contrast_boxes")
    out = tmp_path / "report.html"
    asked = ["report", str(folder), "--by", "brightness", "--images", "0", "--out", str(out)]
    answer = CliRunner().invoke(app, asked)
    assert answer.exit_code == 0, answer.output
    content = json.loads(out.with_suffix(".json").read_text())
    section = next(each for each in content["sections"] if each["id"] == "slices")
    assert section["title"] == "By brightness"
    rows = section["figures"][0]["rows"]
    found = Run(folder).slices("brightness")
    clean = {row["x"]: row["y"] for row in rows if row["series"] == "clean"}
    assert clean == pytest.approx({name: 100 * found[name].score("AP") for name in found})
    assert "By brightness" in out.read_text()


def test_a_slice_without_objects_has_no_score(tmp_path: Path) -> None:
    samples = []
    for k in range(9):
        boxes = np.array([[0.0, 0, 20, 20]])[: int(k % 3 > 0)]
        image = np.full((64, 64, 3), 20 * k, np.uint8)
        samples.append(Sample(f"{k}.png", image, Truth(Instances(boxes, np.zeros(len(boxes), np.int64)))))
    data = SampleDataset.of(samples, name="yards", classes=("dog",))

    def dogs(images: list[np.ndarray]) -> list[Prediction]:  # type: ignore[type-arg]
        return [Prediction([[0, 0, 20, 20]], [0.9], [0]) for _ in images]

    dogs.classes = ("dog",)  # type: ignore[attr-defined]
    run = run_it(dogs, data, out=tmp_path / "run", conditions="fog@1,fog@3", progress=False)
    found = run.slices("count", replicates=50)  # low: no dog; middle: one
    assert [*found] == ["low", "middle"]
    assert [*found.differences("P")] == ["middle"]
    rows = {str(row[0]): row for row in found.table().rows}
    assert np.isnan(rows["low"][3])  # type: ignore[arg-type]
    assert rows["middle"][3] == pytest.approx(100)
    assert found.as_dict()["slices"]["low"]["against_all"] == {}
    section = slice_section({"dogs": found})
    assert {row["x"] for row in section.figures[0].rows} == {"middle"}


CLASSES = tuple("abcdef")


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Forty images of six classes, some objects missed and some boxes of nothing, at random."""
    rng = np.random.default_rng(4)
    samples, answers = [], {}
    for k in range(40):
        image = np.full((32, 32, 3), k, np.uint8)
        labels = rng.integers(0, 6, 2)
        boxes = [[0, 0, 10, 10], [20, 20, 30, 30]]
        samples.append(Sample(f"i{k}", image, Truth(Instances(boxes, labels))))
        seen = rng.random(2) < 0.7
        found = [box for box, there in zip(boxes, seen, strict=True) if there] + [[0, 20, 10, 30]] * 2
        names = [*labels[seen].tolist(), *rng.integers(0, 6, 2).tolist()]
        answers[k] = Prediction(found, rng.random(len(found)), names)

    def model(images: list[np.ndarray]) -> list[Prediction]:  # type: ignore[type-arg]
        return [answers[int(image[0, 0, 0])] for image in images]

    model.classes = CLASSES  # type: ignore[attr-defined]
    data = SampleDataset.of(samples, classes=CLASSES)
    folder = tmp_path_factory.mktemp("uneven") / "run"
    run_it(model=model, data=data, conditions="clean", out=folder, engine="local")
    return Run(folder, data=data)


def test_random_slices_do_not_differ_from_all_images(uneven: Run, tmp_path: Path) -> None:
    """AP is too high on few images, so slices of random images score above the whole."""
    rng, table = np.random.default_rng(2), tmp_path / "parts.csv"
    above, against = [], []
    for _ in range(8):
        parts = rng.permutation(np.repeat(list("stuvw"), 8))
        table.write_text("id,part\n" + "".join(f"i{k},{part}\n" for k, part in enumerate(parts)))
        slices = uneven.slices(str(table), replicates=50)
        above += [scores.score("AP") - slices.whole.score("AP") for scores in slices.values()]
        found = slices.differences("P")
        against += [each.interval.estimate for each in found.values()]
        assert not any(each.clear for each in found.values())
    assert np.mean(above) > 0.05
    assert abs(np.mean(against)) < 0.01
    assert "what as many random images score" in slices.table().note
