"""Models that raise, answer nonsense, hang or die: the cell is named, everything else is kept."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.fake_models import MODELS
from helpers.runs import Configure, all_bytes, all_rows
from helpers.scenes import MARKED
from helpers.typed import stormproof
from stormproof.core.errors import StoreError
from stormproof.core.sample import Image
from stormproof.corruptions.corruption import corruption, ladder
from stormproof.engine.failures import describe
from stormproof.engine.run import run
from stormproof.results.store.parts import failures_path, read_failures, write_failures

BAD = {
    "raises_on_marked": "ArithmeticError: cannot divide by cheese (fake_models.py:",
    "nan_on_marked": "Box 0 is [nan",
    "drops_marked": "0 predictions for 1 images",
    "wrong_label_on_marked": "label 99",
    "exits_on_marked": "the model called sys.exit(3)",
    "raises_without_words_on_marked": "Unspeakable: its message cannot be shown: __str__ raised RuntimeError",
    "raises_half_a_character_on_marked": "ValueError: ?",
    "cancels_on_marked": "the model raised CancelledError: the server went away (fake_models.py:",
}


@pytest.mark.parametrize(
    ("model", "engine"),
    [
        *((model, "local") for model in BAD),
        ("exits_on_marked", "pool"),
        ("cancels_on_marked", "pool"),
    ],
)
def test_one_failed_cell_leaves_all_others(configure: Configure, model: str, engine: str) -> None:
    config = configure(model, engine=engine, workers=1)
    summary = run(config)
    assert [(f.index, f.condition, f.kind) for f in summary.failures] == [(MARKED, "clean", "model")]
    assert BAD[model] in summary.failures[0].error
    assert len(all_rows(Path(config.out))) == 12 * 3 - 1
    recorded = read_failures(Path(config.out))
    assert [(row["image"], row["condition"]) for row in recorded] == [(str(MARKED + 1), "clean")]


@pytest.mark.parametrize(
    ("model", "batch"),
    [
        ("scribbles", 1),  # into its images: it sees the next condition clean
        ("scribbles", 8),  # and is asked again image by image after its batch failed
        ("empties_its_list_and_reshapes", 8),
        ("reuses_its_arrays", 1),
    ],
)
def test_models_that_misuse_their_arrays_get_the_rows_of_a_plain_one(
    configure: Configure, model: str, batch: int
) -> None:
    odd, plain = configure(model, out="odd", batch=batch), configure(out="plain")
    assert run(odd).complete
    assert run(plain).complete
    assert all_rows(Path(odd.out)).equals(all_rows(Path(plain.out)))


@pytest.mark.parametrize("batch", [1, 3])
def test_a_corruption_that_returns_its_image_gives_no_model_the_clean_one(
    configure: Configure, batch: int
) -> None:
    """The next condition is made from the clean image, which a model must not write into."""

    @corruption(family="mine", cite="", amount=ladder(0.0, 0.0, 0.0, 0.0, 0.0))
    def as_it_is(image: Image, *, amount: float) -> Image:
        """Nothing happens."""
        return image

    changes = {"conditions": ["as_it_is@1,as_it_is@2,contrast@4"], "batch": batch, "limit": 4}
    for name in ("blackens", "brightness_boxes"):
        assert run(configure(name, out=name, **changes)).complete
    rows = [all_rows(Path(configure().out).with_name(name)) for name in ("blackens", "brightness_boxes")]
    assert rows[0].equals(rows[1])


def test_failed_cells_are_tried_again(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    config, whole = configure("raises_on_marked"), configure("raises_on_marked", out="whole")
    assert len(run(config).failures) == 1
    assert len(run(config).failures) == 1
    monkeypatch.setenv("FIXED", "1")
    assert run(config).done == {"clean": 1}
    run(whole)
    assert all_bytes(Path(config.out)) == all_bytes(Path(whole.out))
    assert read_failures(Path(config.out)) == []


def test_failures_are_remembered_until_they_are_fixed(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later command about other conditions does not forget why these are missing."""
    config = configure("raises_on_marked")
    run(config)
    told = [{**row, "condition": "pixelate@1"} for row in read_failures(Path(config.out))]
    write_failures(failures_path(Path(config.out), MARKED // 4), told)
    run(config)
    assert [row["condition"] for row in read_failures(Path(config.out))] == ["pixelate@1", "clean"]
    monkeypatch.setenv("FIXED", "1")
    run(config)
    assert read_failures(Path(config.out)) == told


@pytest.mark.parametrize("engine", ["local", "pool"])
def test_a_hanging_call_is_cut_off(configure: Configure, engine: str) -> None:
    summary = run(configure("hangs_on_marked", engine=engine, workers=1, timeout=7200, limit=8))
    assert [(f.index, f.condition, f.kind) for f in summary.failures] == [(MARKED, "clean", "timeout")]
    assert "no answer within 7200 s" in summary.failures[0].error
    assert summary.done.total() == 8 * 3 - 1


def test_a_call_that_cannot_be_interrupted_ends_its_worker() -> None:
    """It hangs with the signal blocked, as code that never returns to Python does."""
    worker = """
import signal
from stormproof.engine.liveness import mark_as_worker
from stormproof.engine.stages import predict

predict.GRACE = 0.01
mark_as_worker()
def hang():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    signal.sigwait([signal.SIGUSR1])
predict.in_time(0.01, hang)
"""
    ended = subprocess.run([sys.executable, "-c", worker], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr


@pytest.mark.slow
def test_finds_the_cell_that_kills_its_worker(configure: Configure) -> None:
    config = configure("dies_on_marked", engine="pool", workers=2)
    summary = run(config)
    assert [(f.index, f.condition, f.kind) for f in summary.failures] == [(MARKED, "clean", "death")]
    assert "the worker died on this image" in summary.failures[0].error
    assert len(all_rows(Path(config.out))) == 12 * 3 - 1


@pytest.mark.slow
def test_a_worker_that_dies_once_is_replaced(
    configure: Configure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DIES_ONCE", str(tmp_path / "died"))
    config = configure("dies_once", engine="pool", workers=2)
    assert run(config).complete
    assert (tmp_path / "died").exists()
    assert len(all_rows(Path(config.out))) == 12 * 3


def test_many_failures_of_one_kind_are_one_line(scene: str, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from stormproof.cli import app

    photos = Path(scene.partition("images=")[2])
    mine = tmp_path / "images"
    shutil.copytree(photos, mine)
    (mine / "003.png").write_bytes(b"no image")
    spec = scene.replace(str(photos), str(mine))
    command = ["run", "--model", f"{MODELS}:brightness_boxes", "--data", spec, "--conditions", "fog"]
    shown = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "run"), "--engine", "local"])
    assert shown.exit_code == 1
    lines = [line for line in shown.stderr.splitlines() if line.startswith("failed: 4 under clean")]
    assert len(lines) == 1
    assert lines[0].endswith("(and 5 more like it)")
    assert "1 image could not be read and is left out of every condition: 4." in shown.stderr
    assert "--allow-missing" in shown.stderr
    allowed = CliRunner().invoke(
        app, [*command, "--out", str(tmp_path / "run"), "--engine", "local", "--allow-missing"]
    )
    assert allowed.exit_code == 0
    assert "on 11 of 12 images" in allowed.stdout


def test_does_not_suggest_continuing_in_a_refused_folder(configure: Configure, scene: str) -> None:
    from typer.testing import CliRunner

    from stormproof.cli import app

    config = configure(limit=1)
    run(config)
    command = ["run", "--model", f"{MODELS}:thresholds", "--data", scene, "--conditions", "fog"]
    shown = CliRunner().invoke(app, [*command, "--out", config.out, "--engine", "local"])
    assert isinstance(shown.exception, StoreError)
    assert "Continue with" not in shown.output


def test_the_command_line_names_the_cell_and_how_to_continue(scene: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = ["run", "--model", f"{MODELS}:raises_on_marked", "--data", scene, "--conditions", "fog@2",
               "--out", str(out), "--engine", "local"]  # fmt: skip
    done = stormproof(*command)
    assert done.returncode == 1
    assert f"failed: {MARKED + 1} under clean: ArithmeticError: cannot divide by cheese" in done.stderr
    assert "1 cell failed; 23 were done and are kept" in done.stderr
    assert "Remove the cause; the same command then runs only the failed ones." in done.stderr
    assert "Continue with" not in done.stderr  # it would fail again


def test_a_failure_repeats_no_password_and_no_key() -> None:
    said = describe(OSError("http://me:pw@host/predict?api_key=7 refused"))
    assert "http://host/predict" in said
    assert "pw" not in said
    assert "api_key" not in said
