"""What is shown: `gallery`, `list`, `quality`, and the version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.typed import stormproof
from stormproof.core.imagefile import read_image
from stormproof.corruptions import CORRUPTIONS, SUITES


@pytest.mark.slow
def test_gallery_shows_every_corruption(tmp_path: Path, photos: Path) -> None:
    out = tmp_path / "gallery.png"
    run = stormproof("gallery", photos / "a.png", "--out", out, "--width", 48)
    assert run.returncode == 0, run.stderr
    sheet = read_image(out)
    shown = [corruption for corruption in CORRUPTIONS.values() if "depth" not in corruption.needs]
    assert sheet.shape[0] > 36 * len(shown)
    assert sheet.shape[1] > 48 * 6
    assert stormproof("gallery", photos / "a.png", "--out", out).returncode == 2
    weather = stormproof(
        "gallery", photos / "a.png", "--out", tmp_path / "w.png", "--conditions", "weather", "--width", 48
    )
    assert "4 corruptions" in weather.stdout
    assert (
        "--width 5"
        in stormproof("gallery", photos / "a.png", "--out", tmp_path / "x.png", "--width", 5).stderr
    )


def test_a_gallery_of_a_dataset_with_depth_shows_haze(tmp_path: Path, scenes: str) -> None:
    out = tmp_path / "haze.png"
    run = stormproof(
        "gallery", scenes, "--conditions", "contextual", "--out", out, "--width", 48, "--index", 1
    )
    assert run.returncode == 0, run.stderr
    assert "2 corruptions, 15 conditions" in run.stdout
    without = stormproof(
        "gallery", scenes.split(",")[0], "--conditions", "contextual", "--out", tmp_path / "no.png"
    )
    assert "haze, defocus cannot be made from an image alone, without depth" in without.stderr
    assert "images 0 to 1" in stormproof("gallery", scenes, "--out", tmp_path / "2.png", "--index", 2).stderr


def test_list_names_everything() -> None:
    corruptions = json.loads(stormproof("list", "corruptions", "--json").stdout)
    assert [c["name"] for c in corruptions] == list(CORRUPTIONS)
    assert all(c["parameters"] and c["description"] for c in corruptions)
    suites = json.loads(stormproof("list", "suites", "--json").stdout)
    assert [s["name"] for s in suites] == list(SUITES)
    table = stormproof("list", "corruptions", columns=80).stdout
    assert all(table.count(f"\n{name} ") == 1 for name in CORRUPTIONS)  # severities beside what happens
    table = stormproof("list", "suites", columns=80).stdout
    assert all(name in table for suite in suites for name in (suite["name"], *suite["corruptions"]))
    benchmarks = json.loads(stormproof("list", "benchmarks", "--json").stdout)
    assert {"coco-c", "voc2012-seg-c", "bdd100k-camera", "person-mutators"} <= {b["name"] for b in benchmarks}
    assert "VOC07 AP50" in stormproof("list", "benchmarks").stdout


def test_a_terminal_without_unicode_gets_what_it_can_show() -> None:
    table, document = (
        subprocess.run([sys.executable, "-m", "stormproof", "list", "corruptions", *flag],
                       env={**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "200"},
                       capture_output=True, text=True, check=True).stdout
        for flag in ((), ("--json",))
    )  # fmt: skip
    assert all(name in table for name in CORRUPTIONS)
    assert [one["description"] for one in json.loads(document)] == [one.doc for one in CORRUPTIONS.values()]


def test_quality_shows_conditions_whole(photos: Path) -> None:
    texts = ("gaussian_noise[sigma=0.1]", "gaussian_noise[sigma=0.25]")
    chosen = [word for text in texts for word in ("--conditions", text)]
    shown = stormproof("quality", f"images:{photos}", "--limit", 1, "--workers", 1, *chosen)
    assert all(text in shown.stdout for text in texts), shown.stderr


def test_prints_the_version() -> None:
    from stormproof import __version__

    assert stormproof("--version").stdout == f"stormproof {__version__}\n"


@pytest.mark.parametrize("what", ["corruptions", "suites", "benchmarks", "datasets", "models", "decoders"])
def test_tables_fit_a_terminal_of_80_columns_and_cut_nothing(what: str) -> None:
    """Whatever a table of 400 columns shows is in the one of 80, folded where it must be."""
    wide, narrow = (stormproof("list", what, columns=columns).stdout for columns in (400, 80))
    assert max(map(len, narrow.splitlines())) <= 80
    assert narrow.count("…") == wide.count("…")
    names = [line.split()[0] for line in wide.splitlines()[1:] if line.strip() and not line.startswith(" ")]
    assert all(name in narrow for name in names)


def test_a_gallery_says_what_it_leaves_out(tmp_path: Path, photos: Path) -> None:
    words = ("gallery", photos / "a.png", "--width", 48, "--out")
    run = stormproof(*words, tmp_path / "g.png", "--conditions", "fog@1,haze@2")
    assert "1 corruption, 1 condition\n" in run.stdout
    assert "left out, for want of depth: haze;" in run.stderr
    clean = stormproof(*words, tmp_path / "c.png", "--conditions", "clean")
    assert clean.returncode == 2
    assert "depth" not in clean.stderr
    assert "name at least one" in clean.stderr
