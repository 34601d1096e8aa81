"""`inspect --tune`: a network whose file does not say how to feed it is fed as its labels show to be best."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from stormproof.cli import app
from stormproof.core.errors import InvalidOption
from stormproof.core.sample import Instances, Sample, Truth
from stormproof.datasets.opened import open_dataset
from stormproof.models.card import Card, InputCard
from stormproof.models.network import Network
from stormproof.tools.tune import AS_GUESSED, input_candidates, tune_input

SIDE = 32


def photograph(k: int) -> Sample:
    """A grey image with a blue square, whose box is the truth, and a red one, which is none."""
    numbers = np.random.default_rng(k)
    image = np.full((SIDE, SIDE, 3), 128, np.uint8)
    x, y = numbers.integers(0, 8, 2)
    image[y : y + 12, x : x + 12] = (0, 0, 255)
    image[y + 12 : y + 20, x + 12 : x + 20] = (255, 0, 0)
    box = np.array([[x, y, x + 12, y + 12]], float)
    return Sample(str(k), image, Truth(Instances(box, np.zeros(1, np.int64))), classes=("square",))


def find_first_channel(batch: np.ndarray) -> list[np.ndarray]:
    """A network that was trained on BGR from −1 to 1: it finds what is bright in the first channel alone."""
    rows = []
    for image in batch:
        bright = (image[0] > 0.9) & (image[2] < -0.9)
        ys, xs = np.nonzero(bright)
        found = (
            [0, 0, 0, 0, 0.0, 0] if not len(xs) else [xs.min(), ys.min(), xs.max() + 1, ys.max() + 1, 0.9, 0]
        )
        rows.append([found])
    return [np.array(rows, np.float32)]


def network(**fed: object) -> Network:
    card = Card(input=InputCard(size=(SIDE, SIDE), **fed), decoder="yolov10", score=0.1, keep=10)  # type: ignore[arg-type]
    return Network("squares", card, find_first_channel, (), ("square",))


@pytest.mark.slow
def test_chooses_the_input_that_fits_the_labels() -> None:
    data = open_dataset([photograph(k) for k in range(16)], classes=("square",))
    done = tune_input(network(std=255), data)
    assert done.chosen.words.startswith("BGR, x / 127.5 − 1")
    assert done.chosen.input.channels == "BGR"
    assert done.chosen.score == pytest.approx(1)
    assert "clear" in done.verdict


@pytest.mark.slow
def test_a_right_guess_is_kept() -> None:
    data = open_dataset([photograph(k) for k in range(16)], classes=("square",))
    done = tune_input(network(mean=127.5, std=127.5, channels="BGR"), data)
    assert done.chosen.words == AS_GUESSED
    assert done.chosen.gain is None


def test_an_advantage_within_chance_does_not_replace_the_guess() -> None:
    """A network that finds the same whatever it is fed: no input is better."""
    same = replace(
        network(std=255), forward=lambda batch: [np.array([[[2, 2, 14, 14, 0.9, 0]]] * len(batch))]
    )
    done = tune_input(same, open_dataset([photograph(k) for k in range(8)], classes=("square",)))
    assert done.chosen.words == AS_GUESSED


def test_candidates_leave_out_the_guess_and_what_whole_numbers_exclude() -> None:
    assert len(input_candidates(InputCard(size=(9, 9)))) == 15
    assert len(input_candidates(InputCard(size=(9, 9), dtype="uint8"))) == 3
    reversed_means = input_candidates(InputCard(size=(9, 9)))["BGR, ImageNet, stretch"].mean
    assert reversed_means == (103.53, 116.28, 123.675)


def test_tune_asks_for_labels(shared: Path) -> None:
    spec = f"onnx:{shared}/models/yolox_nano_416_coco.onnx"
    result = CliRunner().invoke(app, ["inspect", spec, "--tune"])
    assert isinstance(result.exception, InvalidOption)
    assert "--tune needs labelled images" in str(result.exception)


def test_a_draft_is_written_only_when_asked_and_runs(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = f"onnx:{shared}/models/ssdlite_mobilenetv2_300_coco_w16.onnx"
    result = CliRunner().invoke(app, ["inspect", spec])
    assert result.exit_code == 0, result.output
    assert "how to feed it is a guess" in result.stderr
    assert list(tmp_path.iterdir()) == []
    asked = CliRunner().invoke(app, ["inspect", spec, "--fix", "card.yaml"])
    assert asked.exit_code == 0, asked.output
    card = yaml.safe_load((tmp_path / "card.yaml").read_text())
    assert card["decoder"] == "ssd"
    assert card["classes"] == "coco91"
    again = CliRunner().invoke(app, ["inspect", f"{spec},card=card.yaml"])
    assert again.exit_code == 0, again.output
    assert "is a guess" not in again.stderr
