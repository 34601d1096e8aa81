"""`corrupt` of a dataset: copies and annotations that read back as what a run would have scored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.scenes import write_scene, write_street
from helpers.scored_models import MODELS
from stormproof.cli import app
from stormproof.core.condition import Condition
from stormproof.corruptions import apply, truth_under
from stormproof.datasets import read_dataset
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.results.run import Run

MOVED = "geometric_distortion@5[delta=0.5]"  # far more than any severity, as the images are tiny


def corrupt(*words: object) -> tuple[str, list[str]]:
    """What `stormproof corrupt` printed, and how the datasets it wrote are opened."""
    done = CliRunner().invoke(app, ["corrupt", *map(str, words), "--workers", "1"])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    return done.output, [line.partition(": ")[2] for line in lines if line.startswith("open it with")]


def scores(out: Path, data: str, *conditions: str) -> dict[str, dict[str, float]]:
    asked = ["clean", *conditions]
    run(make_config({"model": f"{MODELS}:contrast_masks", "data": data, "conditions": asked,
                     "out": str(out), "engine": "local"}))  # fmt: skip
    table = Run(out).score().per_condition
    return {text: {name: table[name][text] for name in table} for text in asked}


# Thresholds of these are fixed on the clean images, which a copy does not have.
FIXED_ON_CLEAN = {
    "LRP",
    "LRP Loc",
    "LRP FP",
    "LRP FN",
    "LaECE0",
    "LaACE0",
    "safe threshold",
    "safe recall",
    "ADR",
}


def test_a_copy_scores_as_the_run_does(tmp_path: Path) -> None:
    scene = write_scene(tmp_path / "scene", images=6)
    _, specs = corrupt(scene, tmp_path / "copies", "-c", f"{MOVED},fog@2")
    expected = scores(tmp_path / "run", scene, MOVED, "fog@2")
    for condition, spec in zip((MOVED, "fog@2"), specs, strict=True):
        found = scores(tmp_path / f"run of {condition}", spec)["clean"]
        own = {name: value for name, value in expected[condition].items() if name not in FIXED_ON_CLEAN}
        assert {name: found[name] for name in own} == pytest.approx(own, abs=1e-12, nan_ok=True)
    assert 0 < expected[MOVED]["AP"] != expected["clean"]["AP"]
    checked = CliRunner().invoke(app, ["verify", str(tmp_path / "copies")])
    assert checked.exit_code == 0, checked.output


def test_boxes_and_masks_have_moved(tmp_path: Path) -> None:
    scene = write_scene(tmp_path / "scene", images=2)
    _, (spec,) = corrupt(scene, tmp_path / "copies", "-c", MOVED, "--seed", 3)
    source, stored = read_dataset(scene), read_dataset(spec)
    for k in range(2):
        seen = apply(source[k], MOVED, seed=3)
        assert np.array_equal(stored[k].image, seen.image)
        ours, theirs = stored.truth(k).instances, seen.truth.instances
        assert ours is not None
        assert theirs is not None
        np.testing.assert_allclose(ours.boxes, theirs.boxes, atol=1e-9)
        assert not np.allclose(ours.boxes, source.truth(k).instances.boxes)
        for mine, other in zip(ours.masks or (), theirs.masks or (), strict=True):
            assert np.array_equal(mine.to_mask(), other.to_mask())


def test_copies_serve_a_run_of_the_original(tmp_path: Path) -> None:
    """`run --copies` finds them, and scores by the same moved truth."""
    scene = write_scene(tmp_path / "scene", images=3)
    corrupt(scene, tmp_path / "copies", "-c", f"{MOVED},snow@2")
    settings = {"model": f"{MODELS}:contrast_boxes", "data": scene, "conditions": [MOVED, "snow@2"],
                "engine": "local"}  # fmt: skip
    run(make_config({**settings, "out": str(tmp_path / "made")}))
    run(make_config({**settings, "out": str(tmp_path / "read"), "copies": str(tmp_path / "copies")}))
    made, read = (Run(tmp_path / name).score().per_condition for name in ("made", "read"))
    assert made["AP"] == read["AP"]


def test_label_maps_move_too(tmp_path: Path) -> None:
    street = write_street(tmp_path / "street", images=2)
    _, (spec,) = corrupt(street, tmp_path / "copies", "-c", MOVED)
    source, stored = read_dataset(street), read_dataset(spec)
    for k in range(2):
        size, name = source.size(k), source.ids[k]
        moved = truth_under(source.truth(k), size, Condition.parse(MOVED), image_id=name).semantic
        found = stored.truth(k).semantic
        assert found is not None
        assert moved is not None
        here = moved.labels != moved.ignore
        assert np.array_equal(here, found.labels != found.ignore)
        assert np.array_equal(found.labels[here], moved.labels[here])
        assert not np.array_equal(found.labels, source.truth(k).semantic.labels)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--layout", "coco"], "camvid cannot be written as coco: the dataset has no boxes"),
        (["--layout", "cocoa"], "Did you mean 'coco'"),
        (["--overwrite"], "--overwrite: a dataset is written to a new folder"),
    ],
)
def test_names_what_a_format_cannot_hold(tmp_path: Path, words: list[str], message: str) -> None:
    street = write_street(tmp_path / "camvid", images=1)
    done = CliRunner().invoke(app, ["corrupt", street, str(tmp_path / "out"), "-c", MOVED, *words])
    assert message in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_warns_of_images_without_labels(tmp_path: Path) -> None:
    write_scene(tmp_path / "scene", images=1)
    output, _ = corrupt(tmp_path / "scene" / "images", tmp_path / "out", "-c", MOVED)
    assert f"{MOVED} moves objects" in output
