"""What verbs write and print: nothing at the root of the file system, nothing that steers a program."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.fake_models import MODELS
from helpers.scenes import write_scene, write_street
from helpers.typed import make_image
from stormproof.cli import app
from stormproof.cli.console import print_csv, print_json
from stormproof.core.errors import OutputError
from stormproof.core.imagefile import write_image

NOWHERE = Path("/nowhere-that-exists")
CODES = "a\x1b[2J\x9b\u202eb"


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--model", f"{MODELS}:brightness_boxes", "--data", "{data}", "-c", "fog@1", "--out", "{out}"],
        ["corrupt", "{image}", "{out}", "-c", "fog@1"],
        ["corrupt", "{image}", "{out}.png", "-c", "fog@1"],
        ["corrupt", "{data}", "{out}", "-c", "fog@1"],
        ["gallery", "{image}", "--out", "{out}.png", "--width", "32", "-c", "fog@1"],
        ["merge", "{out}", "{run}"],
        ["export", "{run}", "--out", "{out}"],
        ["export", "{run}", "--truth", "--out", "{out}"],
        ["stylize", "{data}", "--out", "{out}"],
        ["trainset", "{data}", "--mix", "standard", "--out", "{out}"],
    ],
    ids=lambda words: " ".join(words[:1] + words[-1:]),
)
def test_a_wrong_path_makes_no_folder_at_the_root(tmp_path: Path, words: list[str]) -> None:
    write_image(tmp_path / "a.png", make_image(0))
    places = {"data": write_scene(tmp_path / "scene", images=1), "image": tmp_path / "a.png",
              "run": tmp_path / "run", "out": NOWHERE / "deep"}  # fmt: skip
    if "{run}" in words:
        made = ["run", "--model", f"{MODELS}:brightness_boxes", "--data", str(places["data"]), "-c", "fog@1"]
        done = CliRunner().invoke(app, [*made, "--engine", "local", "--out", str(tmp_path / "run")])
        assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, [word.format_map(places) for word in words])
    assert not NOWHERE.exists()
    assert isinstance(done.exception, OutputError) or done.exit_code == 2, done.output


def test_printed_json_and_csv_hold_no_control_codes_or_formulas(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [{"condition": CODES, "value": -1.5}, {"condition": "=HYPERLINK(1)", "value": 2.0},
            {"condition": "@x\ny", "value": 0.0}]  # fmt: skip
    print_json(rows)
    said = capsys.readouterr().out
    assert json.loads(said) == rows
    assert not {*"\x1b\x9b\u202e"} & {*said}
    print_csv(rows)
    said = capsys.readouterr().out
    assert not {*"\x1b\x9b\u202e"} & {*said}
    read = list(csv.DictReader(io.StringIO(said)))
    assert [row["condition"] for row in read] == ["a␛[2J��b", "'=HYPERLINK(1)", "'@x␊y"]
    assert [float(row["value"]) for row in read] == [-1.5, 2.0, 0.0]


def test_verbs_print_hostile_names_safely(tmp_path: Path) -> None:
    folder = tmp_path / "=1+1\x9b"
    folder.mkdir()
    write_image(folder / "a.png", np.random.default_rng(0).integers(0, 255, (90, 90, 3), np.uint8))
    frost = f'frost@3[textures="{folder}"]'
    for flag in ("--csv", "--json"):
        words = ["quality", f"images:{folder}", "-c", frost, "-j", "1", flag]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        assert "\x9b" not in done.stdout
    shown = CliRunner().invoke(app, ["inspect", f"images:{folder}", "--json"])
    assert json.loads(shown.stdout)["images"] == 1
    assert "\x9b" not in shown.stdout


@pytest.mark.parametrize(("file_format", "model"), [("coco", "brightness_boxes"), ("png", "thresholds")])
def test_a_killed_export_leaves_nothing_behind(tmp_path: Path, file_format: str, model: str) -> None:
    data = (write_scene if file_format == "coco" else write_street)(tmp_path / "data", images=2)
    words = ["run", "--model", f"{MODELS}:{model}", "--data", data, "-c", "fog@1", "--engine", "local"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    export = ["export", str(tmp_path / "run"), "--format", file_format, "--out", str(tmp_path / "out")]
    assert CliRunner().invoke(app, export).exit_code == 0
    for path in [path for path in (tmp_path / "out").rglob("*") if path.is_file()]:
        own = "" if path.suffix == ".png" else f"{path.name}."  # as images are written, and other files
        path.with_name(f".{own}0123456789ab.tmp").write_bytes(b"half")
    assert CliRunner().invoke(app, export).exit_code == 0
    assert not list((tmp_path / "out").rglob(".*.tmp"))


def test_refuses_intervals_in_csv() -> None:
    refused = CliRunner().invoke(app, ["score", "runs/any", "--interval", "--csv"])
    assert "CSV has no intervals" in str(refused.exception)
