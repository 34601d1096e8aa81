"""The same rows, whatever the way there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from helpers.runs import Configure, all_bytes, all_rows
from helpers.scenes import write_scene
from stormproof.core.errors import RunError
from stormproof.core.imagefile import write_image
from stormproof.corruptions import corrupt_image
from stormproof.datasets import read_dataset
from stormproof.engine.plan import make_plan, survey
from stormproof.engine.run import run
from stormproof.results.run import Run
from stormproof.results.store.parts import read_failures
from stormproof.results.store.record import read_record


def test_rows_hold_the_predictions_of_the_model(configure: Configure) -> None:
    from helpers.fake_models import brightness_boxes

    config = configure()
    summary = run(config)
    assert summary.complete
    assert not summary.failures
    rows = all_rows(Path(config.out)).to_pylist()
    assert len(rows) == 12 * 3
    dataset = read_dataset(str(config.data))
    for row in rows[::7]:
        sample = dataset[row["index"]]
        image = corrupt_image(sample.image, row["condition"], seed=0, image_id=sample.id)
        said = brightness_boxes([image])[0]
        assert row["image"] == sample.id
        np.testing.assert_array_equal(np.array(row["boxes"]), said.boxes)
        np.testing.assert_array_equal(row["scores"], said.scores)


def test_a_profile_has_the_time_of_the_model_under_each_condition(
    configure: Configure, tmp_path: Path
) -> None:
    config = configure(profile=str(tmp_path / "times.csv"))
    run(config)
    title, *rows = (tmp_path / "times.csv").read_text().splitlines()
    assert title == "condition,images,model_ms"
    assert {row.split(",")[0] for row in rows} == {*read_record(Path(config.out)).conditions}
    assert all(row.split(",")[1] == "12" and float(row.split(",")[2]) >= 0 for row in rows)


@pytest.mark.parametrize(
    "other",
    [
        {"batch": 1},
        {"batch": 5},
        {"batch": 64},
        {"engine": "pool", "workers": 2},
        {"chunk": 12},
        {"chunk": 5},
    ],
    ids=str,
)
def test_rows_do_not_depend_on_engine_workers_or_batches(
    configure: Configure, other: dict[str, object]
) -> None:
    one, two = configure(out="one"), configure(out="two", **other)
    run(one)
    run(two)
    assert all_rows(Path(one.out)).equals(all_rows(Path(two.out)))
    if "chunk" not in other:
        assert all_bytes(Path(one.out)) == all_bytes(Path(two.out))


def test_grown_runs_equal_whole_ones(configure: Configure) -> None:
    whole = configure(out="whole")
    run(whole)
    run(configure(out="grown", limit=3, conditions=["contrast@4"]))
    run(configure(out="grown", limit=7, conditions=["fog@2"]))
    run(configure(out="grown"))
    grown = Path(whole.out).with_name("grown")
    assert all_bytes(grown) == all_bytes(Path(whole.out))
    record = read_record(grown)
    assert (record.images, set(record.conditions)) == (12, {"clean", "contrast@4", "fog@2"})


def test_asking_for_less_loses_no_rows(configure: Configure) -> None:
    config = configure()
    run(config)
    before = all_bytes(Path(config.out))
    assert survey(make_plan(configure(limit=2, conditions=["clean"]))).cells_left == 0
    run(configure(limit=2, conditions=["clean", "snow@1"]))
    assert len(all_rows(Path(config.out))) == 12 * 3 + 2
    assert list(all_bytes(Path(config.out)).values())[1:] == list(before.values())[1:]


def test_images_are_decoded_once(configure: Configure) -> None:
    summary = run(configure(conditions=["noise", "blur"]))
    assert summary.times.decoded == 12
    assert run(configure(conditions=["noise", "blur"])).times.decoded == 0


def test_shards_are_disjoint_and_cover_the_dataset(configure: Configure) -> None:
    chunks = [c for i in (1, 2, 3) for c in make_plan(configure(shard=f"{i}/3", chunk=2)).chunks]
    assert sorted(chunks) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("enhance", [[], ["clahe"]], ids=str)
def test_grey_images_are_shown_in_three_channels(
    configure: Configure, tmp_path: Path, enhance: list[str]
) -> None:
    """As any set of photographs has some, and `image[..., ::-1]` would mirror them instead."""
    (tmp_path / "photos").mkdir()
    grey = np.random.default_rng(2).integers(0, 255, (48, 64), np.uint8)
    write_image(tmp_path / "photos" / "grey.png", grey)
    write_image(tmp_path / "photos" / "rgb.png", np.repeat(grey[..., None], 3, axis=2))
    script = tmp_path / "colour.py"
    script.write_text(
        "def find(images):\n"
        "    assert all(image.shape == (48, 64, 3) for image in images)\n"
        "    return [{'boxes': [[0, 0, 1 + image[..., ::-1][:, :9, 0].mean(), 1]], 'scores': [0.5],\n"
        "             'labels': [0]} for image in images]\n"
    )
    config = configure(data=f"images:{tmp_path / 'photos'}", enhance=enhance)
    summary = run(config.model_copy(update={"model": f"{script}:find"}))
    assert summary.complete, summary.failures
    boxes = {row["image"]: row["boxes"] for row in all_rows(Path(config.out)).to_pylist()
             if row["condition"] == "clean"}  # fmt: skip
    assert enhance or boxes["grey"] == boxes["rgb"]


def test_a_missing_image_fails_only_its_own_cells(configure: Configure, tmp_path: Path) -> None:
    spec = write_scene(tmp_path / "holes", images=4)
    (tmp_path / "holes" / "images" / "002.png").unlink()
    config = configure(data=spec, allow_missing=True)
    summary = run(config)
    assert summary.done.total() == 9
    assert {failure.kind for failure in summary.failures} == {"image"}
    assert {row["image"] for row in read_failures(Path(config.out))} == {"3"}


def test_a_tracker_that_cannot_start_stops_the_progress_bar(configure: Configure) -> None:
    """A progress bar hides the cursor: it must be stopped even if a tracker refuses to start."""

    class Told:
        def __init__(self, refuses: bool) -> None:
            self.refuses, self.calls = refuses, list[str]()

        def started(self, record: object, survey: object) -> None:
            self.calls.append("started")
            if self.refuses:
                raise RunError("no key")

        def advanced(self, result: object) -> None: ...

        def ended(self, summary: object) -> None:
            self.calls.append("ended")

    bar, tracker = Told(False), Told(True)
    with pytest.raises(RunError, match="no key"):
        run(configure(), [bar, tracker])
    assert bar.calls == ["started", "ended"]
    assert tracker.calls == ["started"]


def test_the_local_engine_opens_a_model_once(configure: Configure, tmp_path: Path) -> None:
    script, opened = tmp_path / "counted.py", tmp_path / "opened"
    script.write_text(f"""
from stormproof.core.sample import Prediction
def make():
    with open({str(opened)!r}, "a") as file:
        file.write("x")
    return lambda images: [Prediction() for _ in images]
""")
    config = configure(engine="local", chunk=2).model_copy(update={"model": f"{script}:make"})
    assert run(config).complete
    assert opened.read_text() == "x"


def test_rows_of_further_images_do_not_hide_missing_ones(configure: Configure) -> None:
    """Parts may hold more than is asked about, as those of a run that was larger once."""
    config = configure(limit=6, chunk=1)
    assert run(config).complete
    out = Path(config.out)
    (out / "parts" / "part-000000.parquet").unlink()
    opened = Run(out)
    opened.record = opened.record.model_copy(update={"images": 3})
    assert opened.missing == dict.fromkeys(opened.conditions, 1)
