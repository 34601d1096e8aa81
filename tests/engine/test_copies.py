"""Runs over stored copies: the manifest beside them decides whether they are the right ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.fake_models import MODELS
from helpers.runs import Configure, all_rows
from stormproof.cli import app
from stormproof.core.errors import InvalidOption, StormproofError
from stormproof.engine.plan import make_plan
from stormproof.engine.run import run

CONDITIONS = ["contrast@1", "contrast@5"]
WARPED = ["elastic_transform@3[labels=moved]", "geometric_distortion@5"]


def make_copies(source: str, out: Path, conditions: list[str], *, seed: int = 0) -> Path:
    named = ["--conditions", ",".join(conditions), "--seed", str(seed), "-j", "1"]
    made = CliRunner().invoke(app, ["corrupt", source, str(out), *named])
    assert made.exit_code == 0, made.output
    return out


def edit_manifest(copies: Path, **changes: object) -> None:
    path = copies / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def exchange(first: Path, second: Path) -> None:
    aside = first.with_name("aside")
    first.rename(aside)
    second.rename(first)
    aside.rename(second)


@pytest.fixture
def copies(scene: str, tmp_path: Path) -> Path:
    return make_copies(scene, tmp_path / "copies", CONDITIONS)


def test_copies_of_a_dataset_give_the_rows_of_a_run_that_corrupts(
    configure: Configure, scene: str, tmp_path: Path
) -> None:
    conditions = [*CONDITIONS, *WARPED]
    copies = make_copies(scene, tmp_path / "copies", conditions, seed=5)
    usual = {"conditions": conditions, "seed": 5}
    made, read = configure(out="made", **usual), configure(out="read", **usual, copies=str(copies))
    assert run(made).complete
    assert run(read).complete
    columns = ["index", "condition", "boxes", "scores", "labels"]
    assert all_rows(Path(read.out)).select(columns) == all_rows(Path(made.out)).select(columns)
    assert not make_plan(read).doubts


def test_refuses_copies_of_another_seed(configure: Configure, scene: str, tmp_path: Path) -> None:
    copies = make_copies(scene, tmp_path / "copies", WARPED, seed=5)
    with pytest.raises(InvalidOption, match=r"made with seed 5 .*the run has seed 0: add --seed 5"):
        run(configure(conditions=WARPED, copies=str(copies)))


def test_refuses_exchanged_folders(configure: Configure, copies: Path) -> None:
    exchange(copies / "contrast@1", copies / "contrast@5")
    with pytest.raises(StormproofError, match=r"is not the file that .*manifest.json lists"):
        run(configure(conditions=CONDITIONS, copies=str(copies)))


def test_refuses_a_folder_that_was_renamed(configure: Configure, scene: str, tmp_path: Path) -> None:
    """The manifest of a single condition lies inside its folder, and is moved with it."""
    copies = tmp_path / "copies"
    images = scene.partition("images=")[2]
    make_copies(images, copies / "contrast@1", ["contrast@1"])
    assert run(configure(conditions=["contrast@1"], copies=str(copies))).complete
    (copies / "contrast@1").rename(copies / "contrast@5")
    with pytest.raises(InvalidOption, match=r"lists copies under contrast@1 in .*not contrast@5"):
        run(configure(out="other", conditions=["contrast@5"], copies=str(copies)))


def test_refuses_copies_of_another_version_of_a_recipe(configure: Configure, copies: Path) -> None:
    edit_manifest(copies, recipe_versions={"contrast": 99})
    with pytest.raises(InvalidOption, match=r"made by version 99 of contrast .* but this is version"):
        run(configure(conditions=CONDITIONS, copies=str(copies)))


def test_a_changed_copy_fails_its_own_cell(configure: Configure, copies: Path) -> None:
    third = sorted((copies / "contrast@5").rglob("*.png"))[2]
    third.write_bytes(sorted((copies / "contrast@5").rglob("*.png"))[3].read_bytes())
    summary = run(configure(conditions=CONDITIONS, copies=str(copies)))
    (failure,) = summary.failures
    assert (failure.index, failure.condition) == (2, "contrast@5")
    assert "stormproof verify" in failure.error


def test_refuses_a_copy_that_the_manifest_does_not_list(configure: Configure, copies: Path) -> None:
    files = json.loads((copies / "manifest.json").read_text())["files"]
    edit_manifest(copies, files=[file for file in files if "002" not in file["path"]])
    failures = run(configure(conditions=CONDITIONS, copies=str(copies))).failures
    assert len(failures) == 2
    assert all("is not listed in" in failure.error for failure in failures)


def test_refuses_objects_moved_under_the_names_of_files(
    configure: Configure, scene: str, tmp_path: Path
) -> None:
    """Copies of a folder draw by file name, the dataset's labels by image id: they do not fit."""
    images = scene.partition("images=")[2]
    copies = make_copies(images, tmp_path / "copies", [*WARPED, "contrast@1"])
    failures = run(configure(conditions=[*WARPED, "contrast@1"], copies=str(copies))).failures
    assert {failure.condition for failure in failures} == {WARPED[0]}  # the other draws nothing
    assert "made from '000.png', but the dataset calls the image '1'" in failures[0].error


@pytest.mark.parametrize("content", ["{}", '{"name": "another program\'s"}', "[]"])
def test_warns_where_labels_move_and_no_manifest_says_how(
    configure: Configure, scene: str, tmp_path: Path, content: str
) -> None:
    copies = make_copies(scene, tmp_path / "copies", [*WARPED, "contrast@1"])
    (copies / "manifest.json").write_text(content)
    settings = {"conditions": [*WARPED, "contrast@1"], "copies": str(copies)}
    (doubt,) = make_plan(configure(**settings)).doubts
    assert f"{WARPED[0]}, {WARPED[1]} moves labels" in doubt
    assert "seed 0" in doubt
    (copies / "manifest.json").unlink()
    assert make_plan(configure(**settings)).doubts == (doubt,)
    assert make_plan(configure(conditions=["contrast@1"], copies=str(copies))).doubts == ()


def test_a_plan_of_several_models_warns_of_its_copies_once(scene: str, tmp_path: Path) -> None:
    copies = make_copies(scene, tmp_path / "copies", [*WARPED, "contrast@1"])
    (copies / "manifest.json").unlink()
    models = [{"model": f"{MODELS}:brightness_boxes", "name": name} for name in ("first", "second")]
    settings = {"models": models, "datasets": scene, "conditions": WARPED, "copies": str(copies),
                "engine": "local", "limit": 2}  # fmt: skip
    (tmp_path / "plan.yaml").write_text(json.dumps(settings))
    command = ["run", "--config", str(tmp_path / "plan.yaml"), "--out", str(tmp_path / "out")]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    assert " ".join(shown.stderr.split()).count("moves labels") == 1


@pytest.mark.parametrize(
    "changes", [{"seed": "0"}, {"recipe_versions": []}, {"files": [{}]}, {"files": 3}, {"order": 1}]
)
def test_refuses_a_damaged_manifest(configure: Configure, copies: Path, changes: dict[str, object]) -> None:
    edit_manifest(copies, **changes)
    if "seed" in changes:
        edit_manifest(copies, order=None)
    with pytest.raises(InvalidOption, match="is not a manifest as 'stormproof corrupt' writes it"):
        run(configure(conditions=CONDITIONS, copies=str(copies)))
