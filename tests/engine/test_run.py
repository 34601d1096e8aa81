"""The same rows, whatever the way there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine.conftest import Configure, all_bytes, all_rows
from engine.scenes import write_scene
from stormproof.corruptions import corrupt_image
from stormproof.datasets import open_dataset
from stormproof.engine.plan import make_plan, survey
from stormproof.engine.run import run
from stormproof.errors import InvalidOption, OutputError, RunError, StoreError
from stormproof.imagefile import write_image
from stormproof.store.parts import read_failures
from stormproof.store.record import read_record


def test_rows_hold_what_the_model_said(configure: Configure) -> None:
    from engine.fake_models import brightness_boxes

    config = configure()
    summary = run(config)
    assert summary.complete
    assert not summary.failures
    rows = all_rows(Path(config.out)).to_pylist()
    assert len(rows) == 12 * 3
    dataset = open_dataset(str(config.data))
    for row in rows[::7]:
        sample = dataset[row["index"]]
        image = corrupt_image(sample.image, row["condition"], seed=0, image_id=sample.id)
        said = brightness_boxes([image])[0]
        assert row["image"] == sample.id
        np.testing.assert_array_equal(np.array(row["boxes"]), said.boxes)
        np.testing.assert_array_equal(row["scores"], said.scores)


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
def test_rows_do_not_depend_on_the_way(configure: Configure, other: dict[str, object]) -> None:
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


def test_shrinking_a_run_loses_nothing(configure: Configure) -> None:
    config = configure()
    run(config)
    before = all_bytes(Path(config.out))
    assert survey(make_plan(configure(limit=2, conditions=["clean"]))).cells_left == 0
    run(configure(limit=2, conditions=["clean", "snow@1"]))
    assert len(all_rows(Path(config.out))) == 12 * 3 + 2
    assert list(all_bytes(Path(config.out)).values())[1:] == list(before.values())[1:]


def test_images_are_decoded_once(configure: Configure) -> None:
    summary = run(configure(suite=["noise", "blur"]))
    assert summary.times.decoded == 12
    assert run(configure(suite=["noise", "blur"])).times.decoded == 0


def test_shards_are_disjoint_and_cover(configure: Configure) -> None:
    chunks = [c for i in (1, 2, 3) for c in make_plan(configure(shard=f"{i}/3", chunk=2)).chunks]
    assert sorted(chunks) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "brightness_masks"}, "the model was brightness_boxes"),
        ({"seed": 1}, "the seed was 0, now 1"),
        ({"chunk": 3}, "the chunk size was 4, now 3"),
        ({"enhance": ["clahe"]}, "now brightness_boxes+clahe"),
    ],
    ids=str,
)
def test_another_run_is_refused(configure: Configure, change: dict[str, object], words: str) -> None:
    run(configure(limit=2))
    with pytest.raises(StoreError, match="holds a different run") as refusal:
        run(configure(limit=2, **change))  # type: ignore[arg-type]
    assert words in str(refusal.value)
    assert "Give another --out" in str(refusal.value)


def test_a_changed_dataset_is_refused(configure: Configure, tmp_path: Path) -> None:
    from engine.scenes import write_scene

    run(configure(limit=2, data=write_scene(tmp_path / "a", images=4)))
    with pytest.raises(StoreError, match="the dataset was instances"):
        run(configure(limit=2, data=write_scene(tmp_path / "b", images=5)))


def test_a_changed_recipe_is_refused(configure: Configure) -> None:
    config = configure(limit=2)
    run(config)
    path = Path(config.out) / "run.json"
    record = json.loads(path.read_text())
    record["recipes"]["fog"] = 99
    path.write_text(json.dumps(record))
    with pytest.raises(StoreError, match="the recipe of fog was version 99, now version 1"):
        run(config)


def test_changed_files_of_a_condition_are_refused(configure: Configure, tmp_path: Path) -> None:
    """Half of a run under one folder of textures and half under another would be no run at all."""
    ice = tmp_path / "ice"
    ice.mkdir()
    write_image(ice / "a.png", np.full((60, 80, 3), 200, np.uint8))
    config = configure(conditions=[f"frost@3[textures={ice}]"], limit=4)
    run(config)
    assert run(configure(conditions=[f"frost@3[textures={ice}]"], limit=5)).complete
    write_image(ice / "a.png", np.full((60, 80, 3), 100, np.uint8))
    with pytest.raises(StoreError, match=r"the content of .*ice was"):
        run(configure(conditions=[f"frost@3[textures={ice}]"]))


def test_a_folder_of_other_things_is_refused(configure: Configure, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").touch()
    with pytest.raises(StoreError, match="exists and is not a run folder"):
        run(configure())


def test_a_broken_part_is_named(configure: Configure) -> None:
    config = configure()
    run(config)
    (Path(config.out) / "parts" / "part-000001.parquet").write_bytes(b"PAR1 rubbish")
    with pytest.raises(StoreError, match=r"part-000001.parquet is not a readable part file"):
        run(config)


def test_a_run_that_never_works_stops_at_once(configure: Configure) -> None:
    with pytest.raises(RunError, match=r"All 12 cells of the first 4 images failed.*KeyError: 'weights'"):
        run(configure("always_raises"))
    with pytest.raises(RunError, match=r"All 9 cells of the first 3 images failed"):
        run(configure("always_raises", out="small", chunk=1))


@pytest.mark.parametrize("engine", ["local", "pool"])
def test_a_first_picture_that_is_broken_costs_only_itself(
    configure: Configure, tmp_path: Path, engine: str
) -> None:
    """Small sets have chunks of one image, and the broken one may be the first."""
    spec = write_scene(tmp_path / "broken", images=4)
    (tmp_path / "broken" / "images" / "000.png").write_bytes(b"no picture")
    summary = run(configure(data=spec, chunk=1, engine=engine, workers=1))
    assert summary.done.total() == 9
    assert {(failure.image, failure.kind) for failure in summary.failures} == {("1", "image")}


def test_a_set_without_pictures_stops(configure: Configure, tmp_path: Path) -> None:
    spec = write_scene(tmp_path / "gone", images=14)
    for path in (tmp_path / "gone" / "images").iterdir():
        path.write_bytes(b"no picture")
    with pytest.raises(RunError, match=r"All 30 cells of the first 10 images failed.*known format"):
        run(configure(data=spec, chunk=1))


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("haze@3", "haze@3 cannot be made on instances: haze needs the depth of every pixel"),
        ("fog@3[on=catt]", "Unknown class in on= 'catt'. Did you mean 'cat'"),
        ("frost@3[textures=nowhere]", "frost@3[textures=nowhere] cannot be made on instances: "),
    ],
)
def test_what_the_dataset_cannot_give_is_refused_before_the_run(
    configure: Configure, condition: str, words: str
) -> None:
    config = configure(conditions=[condition])
    with pytest.raises(InvalidOption) as error:
        run(config)
    assert words in str(error.value)
    assert not Path(config.out).exists()


def test_a_first_picture_without_depth_does_not_refuse_the_others(
    configure: Configure, tmp_path: Path
) -> None:
    spec = write_scene(tmp_path / "deep", images=3)
    (tmp_path / "deep" / "depth").mkdir()
    for name, metres in (("000", np.nan), ("001", 20), ("002", 30)):
        np.save(tmp_path / "deep" / "depth" / f"{name}.npy", np.full((48, 64), metres, np.float32))
    summary = run(configure(data=f"{spec},depth={tmp_path / 'deep' / 'depth'}", conditions=["haze@3"]))
    assert [(f.image, f.condition) for f in summary.failures] == [("1", "haze@3")]
    assert summary.done["haze@3"] == 2


def test_more_shards_than_chunks_is_a_shard_without_work(configure: Configure, scene: str) -> None:
    from typer.testing import CliRunner

    from engine.conftest import MODELS
    from stormproof.cli import app

    config = configure(shard="9/9")
    command = ["run", "--model", f"{MODELS}:brightness_boxes", "--data", scene, "--conditions", "fog@2"]
    shown = CliRunner().invoke(app, [*command, "--out", config.out, "--chunk", "4", "--shard", "9/9"])
    assert shown.exit_code == 0, shown.output
    assert "more shards than chunks" in shown.stderr


def test_a_folder_that_was_killed_in_the_making_is_taken(configure: Configure) -> None:
    config = configure(limit=1)
    out = Path(config.out)
    (out / "parts").mkdir(parents=True)
    (out / ".run.json.0123456789ab.tmp").touch()
    assert run(config).complete
    (out / "run.json").unlink()
    with pytest.raises(StoreError, match="exists and is not a run folder"):
        run(config)


def test_two_writers_are_one_too_many(configure: Configure) -> None:
    from stormproof.store.lock import sole_writer

    config = configure(limit=1)
    run(config)
    before = (Path(config.out) / "run.json").read_bytes()
    with sole_writer(Path(config.out), "1/1"), pytest.raises(OutputError, match="Another process is writing"):
        run(configure(limit=2, conditions=["snow@1"]))
    assert (Path(config.out) / "run.json").read_bytes() == before  # and adds nothing to what the first does


def test_a_folder_that_cannot_be_locked_is_said(configure: Configure) -> None:
    config = configure(limit=1)
    (Path(config.out) / ".lock-1-of-1").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"Cannot write to .*run: Is a directory"):
        run(config)


def test_a_model_of_other_classes_is_refused(configure: Configure, tmp_path: Path) -> None:
    script = tmp_path / "fish.py"
    script.write_text("classes = ('cod', 'eel')\ndef find(images): return []")
    with pytest.raises(InvalidOption, match=r"No class of find .cod, eel …. is a class of instances"):
        run(configure().model_copy(update={"model": f"{script}:find"}))


def test_nothing_to_test_is_an_error(configure: Configure) -> None:
    with pytest.raises(InvalidOption, match="Say what to test"):
        run(configure(conditions=[]))


@pytest.mark.parametrize("enhance", [[], ["clahe"]], ids=str)
def test_grey_pictures_are_shown_in_three_channels(
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


def test_missing_pictures_fail_alone(configure: Configure, tmp_path: Path) -> None:
    spec = write_scene(tmp_path / "holes", images=4)
    (tmp_path / "holes" / "images" / "002.png").unlink()
    config = configure(data=spec)
    summary = run(config)
    assert summary.done.total() == 9
    assert {failure.kind for failure in summary.failures} == {"image"}
    assert {row["image"] for row in read_failures(Path(config.out))} == {"3"}


def test_a_watch_that_cannot_start_ends_the_others(configure: Configure) -> None:
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
