"""Many models in one plan, corruptions from elsewhere, and copies that somebody made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from helpers.fake_models import MODELS
from helpers.forked import outcome
from helpers.kills import kills
from helpers.runs import Configure, all_bytes
from helpers.scenes import write_scene
from stormproof.cli import app
from stormproof.core.errors import InvalidOption, StoreError
from stormproof.core.imagefile import write_image
from stormproof.corruptions import corrupt_image
from stormproof.datasets import read_dataset
from stormproof.engine.many import runs_of
from stormproof.engine.run import run
from stormproof.results.run import Run, runs_in
from stormproof.results.store.record import read_record
from stormproof.results.store.seal import with_digest


def plan(folder: Path, **changes: object) -> Path:
    """A plan of two models that work, one that always fails, and one that does not exist."""
    names = ("brightness_boxes", "always_raises", "not_there", "brightness_masks")
    models = [{"model": f"{MODELS}:{name}", "name": name, "tags": {"kind": name}} for name in names]
    settings = {"models": models, "datasets": write_scene(folder / "scene", images=4),
                "conditions": ["fog@2"], "engine": "local", "out": str(folder / "zoo")}  # fmt: skip
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump(settings | changes))
    return path


def test_a_failing_model_does_not_stop_the_others(tmp_path: Path) -> None:
    config = plan(tmp_path)
    shown = CliRunner().invoke(app, ["run", "--config", str(config)])
    assert shown.exit_code == 1
    assert "2 of 4 models are done" in shown.stdout
    assert "error: always_raises: All 6 cells of the first 3 images failed" in shown.stderr
    assert "error: not_there:" in shown.stderr
    assert read_record(tmp_path / "zoo" / "brightness_masks").tags == {"kind": "brightness_masks"}
    table = CliRunner().invoke(app, ["score", str(tmp_path / "zoo" / "brightness_boxes"),
                                     str(tmp_path / "zoo" / "brightness_masks")])  # fmt: skip
    assert table.exit_code == 0, table.output
    assert table.stdout.startswith("AP (%) on ")  # the table to decide by
    assert "Models (in %)" not in table.stdout
    again = CliRunner().invoke(app, ["run", "--config", str(tmp_path / "zoo" / "run.yaml"), "--dry-run"])
    assert "8 evaluations, 32 cells, of which 16 are left." in again.stdout


def test_folders_of_many_models_are_merged_and_exported(tmp_path: Path) -> None:
    models = [f"{MODELS}:brightness_boxes", f"{MODELS}:brightness_masks"]
    whole = CliRunner().invoke(app, ["run", "--config", str(plan(tmp_path, models=models))])
    assert whole.exit_code == 0, whole.output
    names = sorted(place.parent.name for place in (tmp_path / "zoo").glob("*/run.json"))
    assert len(names) == 2
    shards = []
    for k in (1, 2):
        path = tmp_path / f"shard{k}.yaml"
        settings = yaml.safe_load((tmp_path / "plan.yaml").read_text())
        shards.append(str(tmp_path / f"zoo{k}"))
        path.write_text(yaml.safe_dump(settings | {"shard": f"{k}/2", "out": shards[-1]}))
        assert CliRunner().invoke(app, ["run", "--config", str(path)]).exit_code == 0
    merged = CliRunner().invoke(app, ["merge", str(tmp_path / "merged"), *shards])
    assert merged.exit_code == 0, merged.output
    for name in names:
        assert all_bytes(tmp_path / "merged" / name) == all_bytes(tmp_path / "zoo" / name)
    done = CliRunner().invoke(app, ["export", str(tmp_path / "merged"), "--out", str(tmp_path / "results")])
    assert done.exit_code == 0, done.output
    assert {
        path.relative_to(tmp_path / "results").as_posix() for path in (tmp_path / "results").rglob("*.json")
    } == {f"{name}/{condition}.json" for name in names for condition in ("clean", "fog@2")}


def test_warns_where_a_score_misses_its_expectation(tmp_path: Path) -> None:
    models = [{"model": f"{MODELS}:brightness_boxes", "name": "one", "expect": {"AP": 0.5}},
              {"model": f"{MODELS}:brightness_boxes", "name": "two", "expect": {"AP": 0.0}}]  # fmt: skip
    shown = CliRunner().invoke(app, ["run", "--config", str(plan(tmp_path, models=models))])
    assert shown.exit_code == 0, shown.output
    assert "warning: one: clean AP is 0.0, expected 50.0" in shown.stderr
    assert "warning: two" not in shown.stderr


def test_patterns_make_one_model_for_each_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.onnx").touch()
    settings = {"models": [f"onnx:{tmp_path}/*.onnx"], "datasets": ["images:x", "world:val"],
                "conditions": "noise", "out": "zoo"}  # fmt: skip
    found = runs_of(settings)
    assert [config.name for config in found] == ["a/images-x", "a/world-val", "b/images-x", "b/world-val"]
    assert found[0].out == "zoo/a/images-x"
    assert found[0].conditions == ("noise",)
    for wrong, words in (
        ({"models": ["onnx:nowhere/*.onnx"]}, "no file matches"),
        ({"models": [{"model": "hog", "nmae": "x"}]}, "'nmae' is not known"),
        ({"models": ["hog", "hog"], "datasets": ["images:x"]}, "two models are called 'hog'"),
        ({"model": "hog"}, "model and models exclude each other"),
        ({"precision": 0.5}, "precision .* is for a run of one model"),
        ({"profile": "times.csv"}, "profile .* is for a run of one model"),
        ({"track": "mlflow"}, "track .* is for a run of one model"),
    ):
        with pytest.raises(InvalidOption, match=words):
            runs_of(settings | wrong)


@pytest.mark.parametrize("name", ["../../x", "/x", "..", ".", "", " ", "a/b", "a\\b", "a\0b", "a\nb", 3])
def test_a_name_that_is_not_a_folder_in_the_plans_own_is_refused(tmp_path: Path, name: object) -> None:
    models = [{"model": f"{MODELS}:brightness_boxes", "name": name}]
    settings = {"models": models, "datasets": "images:x", "conditions": "fog@1", "out": str(tmp_path / "zoo")}
    with pytest.raises(InvalidOption, match="cannot be the name of a folder"):
        runs_of(settings)
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump(settings))
    assert isinstance(CliRunner().invoke(app, ["run", "--config", str(path)]).exception, InvalidOption)
    assert [*tmp_path.iterdir()] == [path]


def test_runs_of_a_plan_have_the_names_of_their_records(tmp_path: Path) -> None:
    """Folders that change places do not change which model is meant."""
    models = [{"model": f"{MODELS}:{model}", "name": name}
              for model, name in (("brightness_boxes", "one"), ("brightness_masks", "two"))]  # fmt: skip
    done = CliRunner().invoke(app, ["run", "--config", str(plan(tmp_path, models=models))])
    assert done.exit_code == 0, done.output
    zoo = tmp_path / "zoo"
    zoo.joinpath("one").rename(zoo / "three")
    zoo.joinpath("two").rename(zoo / "one")
    assert runs_in([zoo]) == {"one": zoo / "three", "two": zoo / "one"}
    rows = json.loads((zoo / "three" / "run.json").read_text())
    del rows["digest"]
    (zoo / "three" / "run.json").write_text(json.dumps(with_digest(rows | {"name": "../../out"})))
    for words in (
        ["merge", str(tmp_path / "a"), str(zoo)],
        ["export", str(zoo), "--out", str(tmp_path / "b")],
    ):
        shown = CliRunner().invoke(app, words)
        assert isinstance(shown.exception, StoreError)
        assert "leads out of a folder" in str(shown.exception)
    assert {path.name for path in tmp_path.iterdir()} == {"zoo", "scene", "plan.yaml"}


@pytest.mark.slow
def test_a_plan_that_is_killed_five_times_ends_in_the_same_bytes(tmp_path: Path) -> None:
    """Six models, killed at random moments of the run."""
    assert {*kills("plan", 5, seed=5, folder=tmp_path)} == {("same bytes", "")}


def test_temporary_files_of_killed_writers_are_removed(tmp_path: Path) -> None:
    """Wherever a kill can leave one: at the plan's settings, and at a run's record, settings and parts."""
    models = [{"model": f"{MODELS}:brightness_boxes", "name": "one"}]
    words = ["run", "--config", str(plan(tmp_path, models=models))]
    zoo = tmp_path / "zoo"
    assert CliRunner().invoke(app, words).exit_code == 0
    part = min((zoo / "one" / "parts").iterdir())
    whole = part.read_bytes()
    part.unlink()
    written = (zoo / "run.yaml", zoo / "one" / "run.yaml", zoo / "one" / "run.json", part,
               zoo / "one" / "failures" / f"{part.stem}.json")  # fmt: skip
    for path in written:
        path.with_name(f".{path.name}.0123456789ab.tmp").write_bytes(b"half")
    assert CliRunner().invoke(app, words).exit_code == 0
    assert part.read_bytes() == whole
    assert not list(zoo.rglob(".*.tmp"))


_PLUGIN = '''
import numpy as np
from stormproof.corruptions.corruption import corruption, ladder

@corruption(family="mine", cite="", amount=ladder(10, 20, 30, 40, 50){more})
def darker(image, *, amount):
    """Less light."""
    return np.maximum(image.astype(int) - amount, 0).astype(np.uint8)
'''


def test_own_corruptions_run_and_are_scored_without_their_code(configure: Configure, tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(_PLUGIN.replace("{more}", ""))
    config = configure(conditions=["darker@3"], plugin=[str(plugin)], limit=3)
    assert run(config).complete
    assert read_record(Path(config.out)).declared["darker"].family == "mine"
    code, shown = outcome(["score", config.out, "--json"], tmp_path)  # by a process that knows no plugin
    assert code == 0, shown
    assert [*json.loads(shown)["scores"]["AP"]] == ["clean", "darker@3"]
    plugin.write_text(_PLUGIN.replace("{more}", "").replace("- amount", "- 2 * amount"))
    with pytest.raises(StoreError, match=r"the content of .*mine.py was"):
        run(config)


def test_a_file_that_is_no_plugin_is_refused(configure: Configure, tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_text("\n1 / 0\n")
    for name, words in (
        ("empty.py", "declares neither a corruption nor a metric"),
        ("broken.py", "line 2: ZeroDivisionError"),
        ("none.py", "no such file"),
    ):
        with pytest.raises(InvalidOption, match=words):
            run(configure(plugin=[str(tmp_path / name)]))


def test_copies_are_read_instead_of_made(configure: Configure, tmp_path: Path, scene: str) -> None:
    dataset = read_dataset(scene)
    for index in range(4):
        sample = dataset[index]
        for text, folder in (("fog@2", "fog@2"), ("contrast@4", "contrast/4")):
            path = tmp_path / "copies" / folder / f"{index:03d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_image(path, corrupt_image(sample.image, text, seed=0, image_id=sample.id))
    made = configure(out="made", limit=4)
    read = configure(out="read", limit=4, copies=str(tmp_path / "copies"))
    run(made)
    run(read)
    assert Run(Path(made.out)).score().per_class == Run(Path(read.out)).score().per_class
    with pytest.raises(StoreError, match="the folder of copies was"):
        run(configure(out="read", limit=4))
    with pytest.raises(Exception, match=r"has no folder of copies for snow@1"):
        run(configure(out="other", conditions=["snow@1"], copies=str(tmp_path / "copies")))
