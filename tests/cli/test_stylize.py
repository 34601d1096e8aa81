"""`stormproof stylize`, `trainset` and `quality --measure`, as typed."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stormproof.cli import app
from stormproof.core.errors import InvalidOption
from stormproof.datasets import read_dataset
from stormproof.style.commands import read_sequence

WORLD = "world:val,count=2,size=64x48"


def test_stylizes_a_sequence_in_two_modes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ["--sequence", "0:1:0.5", "--mode", "objects", "--mode", "image", "--out", str(out), "-j", "1"]
    said = CliRunner().invoke(app, ["stylize", WORLD, *asked])
    assert said.exit_code == 0, said.output
    folders = sorted(path.name for path in out.iterdir() if path.is_dir())
    assert len(folders) == 6
    assert "objects-feature-0.5" in folders
    spec = next(line for line in said.output.splitlines() if "open it with" in line).split("with: ")[1]
    assert len(read_dataset(spec)) == 2
    assert CliRunner().invoke(app, ["verify", str(out)]).exit_code == 0
    again = CliRunner().invoke(app, ["stylize", WORLD, *asked])
    assert isinstance(again.exception, OSError)  # finished: nothing to go on with


def test_writes_a_trainset_as_yolo(tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ["--mix", "combined", "--layout", "yolo", "--out", str(out), "-j", "1"]
    said = CliRunner().invoke(app, ["trainset", WORLD, *asked])
    assert said.exit_code == 0, said.output
    assert len(read_dataset(f"yolo:{out}/data.yaml,split=train")) == 4


def test_writes_a_trainset_of_the_street_as_cityscapes(tmp_path: Path) -> None:
    asked = ["--mix", "standard", "--layout", "cityscapes", "--out", str(tmp_path / "out"), "-j", "1"]
    said = CliRunner().invoke(app, ["trainset", WORLD, *asked])
    assert said.exit_code == 0, said.output
    assert "no place for objects of class traffic light, stop sign" in said.output
    assert len(read_dataset(f"cityscapes:{tmp_path / 'out'},split=train")) == 2


def test_quality_by_size_prints_a_table() -> None:
    asked = ["--conditions", "style[alpha=0.5]", "--conditions", "style[alpha=0.5,space=pixel]", "-j", "1"]
    measures = ["--measure", "gradient_ssim,colour_wasserstein", "--by-size", "--csv"]
    said = CliRunner().invoke(app, ["quality", "world:val,count=2,size=128x96", *asked, *measures])
    assert said.exit_code == 0, said.output
    rows = list(csv.DictReader(io.StringIO(said.stdout[said.stdout.index("condition,") :])))
    assert {row["size"] for row in rows} >= {"image", "small"}
    whole = [float(row["gradient_ssim"]) for row in rows if row["size"] == "image"]
    assert whole[1] > whole[0]  # pixel space keeps more of the shapes


@pytest.mark.parametrize("text", ["0:1", "a:b:c", "1:0:0.1", "0:2:0.1", "0:1:0", "0:1:inf", "0:1:1e-9"])
def test_refuses_an_invalid_sequence(text: str) -> None:
    with pytest.raises(InvalidOption, match=r"0:1:0\.1"):
        read_sequence(text)


@pytest.mark.parametrize(
    "asked",
    [["--styles-per-image", "0"], ["--feather", "nan"], ["--feather", "inf"], ["--quality", "0"]],
    ids=lambda asked: "=".join(asked),
)
def test_refuses_numbers_outside_their_range(tmp_path: Path, asked: list[str]) -> None:
    with pytest.raises(InvalidOption, match=asked[0]):
        CliRunner().invoke(app, ["stylize", WORLD, "--out", str(tmp_path), *asked], catch_exceptions=False)


def test_says_which_steps_a_sequence_may_have() -> None:
    with pytest.raises(InvalidOption, match=r"0\.001 ≤ step ≤ 1"):
        read_sequence("0:1:2")


def test_a_sequence_has_both_ends() -> None:
    assert read_sequence("0:1:0.1") == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
