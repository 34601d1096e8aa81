"""Runs that must not begin, or must not go on: what is refused, and in which words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from helpers.runs import Configure
from helpers.scenes import write_scene, write_street
from stormproof.core.errors import InvalidOption, OutputError, RunError, StoreError
from stormproof.core.imagefile import write_image
from stormproof.engine.run import run
from stormproof.results.store.seal import json_digest


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
def test_refuses_the_folder_of_another_run(
    configure: Configure, change: dict[str, object], words: str
) -> None:
    run(configure(limit=2))
    with pytest.raises(StoreError, match="holds a different run") as refusal:
        run(configure(limit=2, **change))  # type: ignore[arg-type]
    assert words in str(refusal.value)
    assert "Give another --out" in str(refusal.value)


@pytest.mark.parametrize("place", ["no such folder/times.csv", "."])
def test_a_profile_that_could_not_be_written_at_the_end_is_refused(configure: Configure, place: str) -> None:
    config = configure(limit=2, profile=place)
    with pytest.raises(InvalidOption, match=r"--profile .* a file in a folder that exists"):
        run(config)
    assert not Path(config.out).exists()


def test_a_changed_dataset_is_refused(configure: Configure, tmp_path: Path) -> None:
    from helpers.scenes import write_scene

    run(configure(limit=2, data=write_scene(tmp_path / "a", images=4)))
    with pytest.raises(StoreError, match="the dataset was instances"):
        run(configure(limit=2, data=write_scene(tmp_path / "b", images=5)))


def test_a_changed_recipe_is_refused(configure: Configure) -> None:
    config = configure(limit=2)
    run(config)
    path = Path(config.out) / "run.json"
    record = json.loads(path.read_text())
    record["recipes"]["fog"] = 99
    del record["digest"]
    path.write_text(json.dumps(record | {"digest": json_digest(record)}))
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


def test_refuses_a_folder_that_is_no_run(configure: Configure, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").touch()
    with pytest.raises(StoreError, match="exists and is not a run folder"):
        run(configure())


def test_a_broken_part_is_named(configure: Configure) -> None:
    config = configure()
    run(config)
    (Path(config.out) / "parts" / "part-000001.parquet").write_bytes(b"PAR1 rubbish")
    with pytest.raises(StoreError, match=r"part-000001.parquet is damaged: .* rm .* && stormproof run"):
        run(config)


def test_a_run_that_never_works_stops_at_once(configure: Configure) -> None:
    with pytest.raises(RunError, match=r"All 12 cells of the first 4 images failed.*KeyError: 'weights'"):
        run(configure("always_raises"))
    with pytest.raises(RunError, match=r"All 9 cells of the first 3 images failed"):
        run(configure("always_raises", out="small", chunk=1))


@pytest.mark.parametrize("engine", ["local", "pool"])
def test_a_first_image_that_is_broken_costs_only_itself(
    configure: Configure, tmp_path: Path, engine: str
) -> None:
    """Small sets have chunks of one image, and the broken one may be the first."""
    spec = write_scene(tmp_path / "broken", images=4)
    (tmp_path / "broken" / "images" / "000.png").write_bytes(b"no image")
    summary = run(configure(data=spec, chunk=1, engine=engine, workers=1))
    assert summary.done.total() == 9
    assert {(failure.image, failure.kind) for failure in summary.failures} == {("1", "image")}


def test_refuses_a_dataset_without_images(configure: Configure, tmp_path: Path) -> None:
    spec = write_scene(tmp_path / "gone", images=14)
    for path in (tmp_path / "gone" / "images").iterdir():
        path.write_bytes(b"no image")
    with pytest.raises(RunError, match=r"Not one of the first 10 images could be read.*known format"):
        run(configure(data=spec, chunk=1))


@pytest.mark.parametrize("images", [1, 3])
def test_a_run_without_a_readable_image_ends_with_an_error(tmp_path: Path, images: int) -> None:
    from typer.testing import CliRunner

    from helpers.fake_models import MODELS
    from stormproof.cli import app

    for index in range(images):
        (tmp_path / "photos").mkdir(exist_ok=True)
        (tmp_path / "photos" / f"{index}.png").write_bytes(b"no image")
    words = ["run", "--model", f"{MODELS}:brightness_boxes", "--data", f"images:{tmp_path / 'photos'}"]
    for _ in range(2):  # the same command ends the same way
        shown = CliRunner().invoke(
            app, [*words, "-c", "fog@2", "--engine", "local", "--out", str(tmp_path / "r")]
        )
        assert isinstance(shown.exception, RunError)
        assert f"Not one of the first {images} image" in str(shown.exception)
        assert "all done" not in shown.stdout
    with pytest.raises(StoreError, match=r"no image of photos could be read; 0: .*Nothing can be scored"):
        CliRunner().invoke(app, ["score", str(tmp_path / "r")], catch_exceptions=False)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("haze@3", "haze@3 cannot be made on instances: haze needs the depth of every pixel"),
        ("fog@3[on=catt]", "Unknown class in on= 'catt'. Did you mean 'cat'"),
        ("frost@3[textures=nowhere]", "frost@3[textures=nowhere] cannot be made on instances: "),
    ],
)
def test_refuses_what_the_dataset_cannot_give_before_the_run(
    configure: Configure, condition: str, words: str
) -> None:
    config = configure(conditions=[condition])
    with pytest.raises(InvalidOption) as error:
        run(config)
    assert words in str(error.value)
    assert not Path(config.out).exists()


def test_a_first_image_without_depth_does_not_refuse_the_others(configure: Configure, tmp_path: Path) -> None:
    spec = write_scene(tmp_path / "deep", images=3)
    (tmp_path / "deep" / "depth").mkdir()
    for name, metres in (("000", np.nan), ("001", 20), ("002", 30)):
        np.save(tmp_path / "deep" / "depth" / f"{name}.npy", np.full((48, 64), metres, np.float32))
    summary = run(configure(data=f"{spec},depth={tmp_path / 'deep' / 'depth'}", conditions=["haze@3"]))
    assert [(f.image, f.condition) for f in summary.failures] == [("1", "haze@3")]
    assert summary.done["haze@3"] == 2


def test_more_shards_than_chunks_is_a_shard_without_work(configure: Configure, scene: str) -> None:
    from typer.testing import CliRunner

    from helpers.fake_models import MODELS
    from stormproof.cli import app

    config = configure(shard="9/9")
    command = ["run", "--model", f"{MODELS}:brightness_boxes", "--data", scene, "--conditions", "fog@2"]
    shown = CliRunner().invoke(app, [*command, "--out", config.out, "--chunk", "4", "--shard", "9/9"])
    assert shown.exit_code == 0, shown.output
    assert "more shards than chunks" in shown.stderr


def test_resumes_a_folder_left_by_a_killed_run(configure: Configure) -> None:
    config = configure(limit=1)
    out = Path(config.out)
    (out / "parts").mkdir(parents=True)
    (out / ".run.json.0123456789ab.tmp").touch()
    assert run(config).complete
    (out / "run.json").unlink()
    assert run(config).complete  # its parts say whose they are
    (out / "run.json").unlink()
    with pytest.raises(StoreError, match="belongs to another run"):
        run(configure(limit=1, seed=1))


def test_refuses_a_second_writer_of_a_folder(configure: Configure) -> None:
    from stormproof.results.store.lock import sole_writer

    config = configure(limit=1)
    run(config)
    before = (Path(config.out) / "run.json").read_bytes()
    with sole_writer(Path(config.out), "1/1"), pytest.raises(OutputError, match="Another process is writing"):
        run(configure(limit=2, conditions=["snow@1"]))
    assert (Path(config.out) / "run.json").read_bytes() == before  # and adds nothing to what the first does


def test_reports_a_folder_that_cannot_be_locked(configure: Configure) -> None:
    config = configure(limit=1)
    (Path(config.out) / ".lock-1-of-1").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"Cannot write to .*run: Is a directory"):
        run(config)


def test_a_model_of_other_classes_is_refused(configure: Configure, tmp_path: Path) -> None:
    script = tmp_path / "fish.py"
    script.write_text("classes = ('cod', 'eel')\ndef find(images): return []")
    with pytest.raises(InvalidOption, match=r"No class of find .cod, eel …. is a class of instances"):
        run(configure().model_copy(update={"model": f"{script}:find"}))


def test_refuses_a_model_that_shares_only_the_background_class(configure: Configure, tmp_path: Path) -> None:
    street = write_street(tmp_path / "street")
    names = tmp_path / "street" / "classes.json"
    names.write_text(names.read_text().replace("dark", "background"))
    script = tmp_path / "maps.py"
    script.write_text("def find(images): return []\nfind.semantic_classes = ('background', 'cod')")
    config = configure(data=street).model_copy(update={"model": f"{script}:find"})
    with pytest.raises(InvalidOption, match=r"No class of find .*rename.cod="):
        run(config)
    script.write_text(script.read_text().replace("('background', 'cod')", "('0', '1')"))
    with pytest.raises(InvalidOption, match=r"they are numbers: name all 2, .*classes="):
        run(config)
    script.write_text(script.read_text().replace("('0', '1')", "('background', 'cod')"))
    script.write_text(script.read_text().replace("cod", "bright"))
    with pytest.raises(RunError, match="cells of the first"):  # begins, and fails by its own fault
        run(config)


def test_truth_without_the_benchmarks_metric_is_refused_before_the_run(
    configure: Configure, tmp_path: Path
) -> None:
    """Cityscapes with labelIds alone has no objects, which cityscapes-c is scored by."""
    frame, root = "x_000000_000000", tmp_path / "cityscapes"
    for kind, suffix in (("leftImg8bit", "leftImg8bit"), ("gtFine", "gtFine_labelIds")):
        (root / kind / "val" / "x").mkdir(parents=True)
        pixels = np.full((48, 64) if kind == "gtFine" else (48, 64, 3), 7, np.uint8)
        write_image(root / kind / "val" / "x" / f"{frame}_{suffix}.png", pixels)
    asked = {"data": None, "conditions": ("fog@1",), "benchmark": "cityscapes-c", "root": str(root)}
    config = configure().model_copy(update=asked)
    with pytest.raises(InvalidOption, match="has no objects to compute AP from"):
        run(config)
    assert not Path(config.out).exists()


def test_label_maps_on_a_dataset_of_objects_are_refused(configure: Configure, tmp_path: Path) -> None:
    script = tmp_path / "maps.py"
    script.write_text("def find(images): return []\nfind.semantic_classes = ('cat', 'dog')")
    config = configure().model_copy(update={"model": f"{script}:find"})
    with pytest.raises(InvalidOption, match="find predicts label maps, but instances has no truth for them"):
        run(config)
    assert not Path(config.out).exists()


def test_refuses_a_run_without_conditions(configure: Configure) -> None:
    with pytest.raises(InvalidOption, match="No conditions given"):
        run(configure(conditions=[]))
