"""`corrupt` and `verify` as a person types them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from helpers.typed import make_image, stormproof
from stormproof import corrupt_image
from stormproof.core.imagefile import read_image, write_image


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_corrupts_one_image_into_one_file(tmp_path: Path, photos: Path) -> None:
    out = tmp_path / "foggy.png"
    run = stormproof("corrupt", photos / "a.png", out, "--conditions", "fog@3")
    assert run.returncode == 0, run.stderr
    assert (read_image(out) == corrupt_image(read_image(photos / "a.png"), "fog@3", image_id="a.png")).all()
    again = stormproof("corrupt", photos / "a.png", out, "--conditions", "fog@3")
    assert again.returncode == 2
    assert "exists" in again.stderr


def test_the_destination_may_be_given_by_out(tmp_path: Path, photos: Path) -> None:
    out = tmp_path / "foggy.png"
    run = stormproof("corrupt", photos / "a.png", "--conditions", "fog@3", "--out", out)
    assert run.returncode == 0, run.stderr
    assert out.is_file()
    both = stormproof("corrupt", photos / "a.png", out, "--conditions", "fog@3", "-o", out)
    assert "name one destination" in both.stderr
    none = stormproof("corrupt", photos / "a.png", "--conditions", "fog@3")
    assert "with --out" in none.stderr


def test_refuses_options_that_contradict_the_name_of_an_image(tmp_path: Path, photos: Path) -> None:
    out = tmp_path / "foggy.png"
    other = stormproof("corrupt", photos / "a.png", out, "--conditions", "fog@3", "--format", "jpg")
    assert other.returncode == 2
    assert "foggy.jpg" in other.stderr
    several = stormproof("corrupt", photos / "a.png", out, "--conditions", "fog@2-3")
    assert several.returncode == 2
    assert "2 conditions" in several.stderr
    assert not out.exists()
    same = stormproof("corrupt", photos / "a.png", tmp_path / "f.jpeg", "-c", "fog@3", "--format", "jpg")
    assert same.returncode == 0, same.stderr


def test_a_device_gives_the_same_pixels(tmp_path: Path, photos: Path) -> None:
    pytest.importorskip("torch", reason="needs torch")
    write_image(photos / "small.png", make_image(9, (20, 31, 3)))
    (photos / "broken.png").write_bytes(b"no image")
    (photos / "._a.png").write_bytes(b"what macOS writes beside a file")
    out, one = tmp_path / "out", tmp_path / "one.png"
    run = stormproof("corrupt", photos, out, "-c", "fog@3,contrast@2", "--device", "cpu")
    assert run.returncode == 1
    assert "1 of 7 images could not be read: broken.png" in run.stderr
    made = json.loads((out / "manifest.json").read_text())["files"]
    assert len(made) == 2 * 6
    for copy in made:
        source, condition = read_image(photos / copy["source"]), copy["condition"]
        expected = corrupt_image(source, condition, image_id=copy["source"])
        assert (read_image(out / copy["path"]) == expected).all(), copy["path"]
    run = stormproof("corrupt", photos / "a.png", one, "--conditions", "fog@3", "--device", "cpu")
    assert run.returncode == 0, run.stderr
    assert (read_image(one) == read_image(out / "fog@3" / "a.png")).all()
    run = stormproof("corrupt", photos, tmp_path / "none", "-c", "style[alpha=1]", "--device", "cpu")
    assert run.returncode == 2
    assert "cannot run on batches" in run.stderr


def test_any_number_of_workers_gives_the_same_bytes(tmp_path: Path, photos: Path) -> None:
    trees = []
    for workers in (1, 2, 8):
        out = tmp_path / f"out{workers}"
        run = stormproof("corrupt", photos, out, "--conditions", "weather", "--workers", workers, "--seed", 5)
        assert run.returncode == 0, run.stderr
        trees.append(tree(out))
    assert trees[0] == trees[1] == trees[2]
    assert len(trees[0]) == 5 * 20 + 1
    expected = corrupt_image(read_image(photos / "more/c.png"), "snow@2", seed=5, image_id="more/c.png")
    assert (read_image(tmp_path / "out8" / "snow@2" / "more" / "c.png") == expected).all()
    grey = read_image(tmp_path / "out1" / "fog@1" / "more" / "grey.png")
    assert grey.ndim == 2


def test_verify_finds_what_changed(tmp_path: Path, photos: Path) -> None:
    out = tmp_path / "out"
    assert stormproof("corrupt", photos, out, "--conditions", "contrast@2", "-j", 1).returncode == 0
    assert stormproof("verify", out).returncode == 0
    manifest = json.loads((out / "manifest.json").read_text())
    assert {f["path"] for f in manifest["files"]} == {
        "a.png",
        "b.png",
        "more/c.png",
        "more/d.png",
        "more/grey.png",
    }
    assert all(len(f["sha256"]) == len(f["pixels_sha256"]) == 64 for f in manifest["files"])
    (out / "a.png").write_bytes(b"something else")
    (out / "b.png").unlink()
    run = stormproof("verify", out)
    assert run.returncode == 1
    assert "a.png: changed" in run.stderr
    assert "b.png: missing" in run.stderr
    assert stormproof("verify", photos).returncode == 2


def test_verify_does_not_look_outside_its_folder(tmp_path: Path) -> None:
    record = {"path": "../secret", "source": "", "condition": "clean", "sha256": "", "pixels_sha256": ""}
    (tmp_path / "manifest.json").write_text(json.dumps({"files": [record]}))
    run = stormproof("verify", tmp_path)
    assert run.returncode == 1
    assert "points outside" in run.stderr


def test_unreadable_files_are_named_counted_and_skipped(tmp_path: Path, photos: Path) -> None:
    write_image(photos / "whole.jpg", make_image(1, (300, 300, 3)))
    (photos / "cut.jpg").write_bytes((photos / "whole.jpg").read_bytes()[:9000])
    (photos / "text.png").write_text("hello")
    out = tmp_path / "out"
    run = stormproof("corrupt", photos, out, "-c", "fog@1", "-j", 2)
    assert run.returncode == 1
    assert "cut.jpg" in run.stderr
    assert "text.png" in run.stderr
    assert "2 of 8 images could not be read" in run.stderr
    manifest = json.loads((out / "manifest.json").read_text())
    assert len(manifest["files"]) == 6
    assert [f["source"] for f in manifest["failed"]] == ["cut.jpg", "text.png"]
    assert stormproof("verify", out).returncode == 0


def test_names_that_would_collide_keep_their_extension(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    write_image(folder / "a.png", make_image(0))
    write_image(folder / "a.jpg", make_image(1))
    write_image(folder / "b.jpg", make_image(2))
    assert stormproof("corrupt", folder, tmp_path / "out", "-c", "fog@1").returncode == 0
    assert set(tree(tmp_path / "out")) == {"a.png.png", "a.jpg.png", "b.png", "manifest.json"}
    write_image(folder / "a.jpg.png", make_image(3))
    again = stormproof("corrupt", folder, tmp_path / "again", "-c", "fog@1")
    assert again.returncode == 2
    assert "a.jpg and a.jpg.png would both become a.jpg.png; rename one of them" in again.stderr
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--conditions", "fogg@3"), "Did you mean 'fog'?"),
        (("--conditions", "fog@0"), "from 1 to 5"),
        (("--conditions", "fog@6"), "from 1 to 5"),
        (("--conditions", "imagenet"), "Did you mean 'imagenet-c'?"),
        (("--conditions", "gaussian_noise[sigma=nan]"), "finite"),
        (("--conditions", "gaussian_noise[sigma=-1]"), "sigma must lie in"),
        (("--conditions", "frost@1[textures=no/such/folder]"), "no/such/folder"),
        ((), "No conditions given; name them with --conditions"),
        (("--conditions", "fog", "--workers", "-1"), "--workers -1"),
    ],
)
def test_mistakes_get_one_clear_error_and_change_nothing(
    tmp_path: Path, photos: Path, arguments: tuple[str, ...], says: str
) -> None:
    out = tmp_path / "out"
    run = stormproof("corrupt", photos, out, *arguments)
    assert run.returncode == 2
    assert says in run.stderr
    assert "Traceback" not in run.stderr
    assert not out.exists() or not any(out.iterdir())


def test_a_folder_in_use_is_left_alone(tmp_path: Path, photos: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    run = stormproof("corrupt", photos, out, "-c", "fog@1")
    assert run.returncode == 2
    assert "not empty" in run.stderr
    assert set(tree(out)) == {"mine.txt"}
    assert stormproof("corrupt", photos, out, "-c", "fog@1", "--overwrite").returncode == 0


def test_refuses_missing_sources_and_empty_folders(tmp_path: Path) -> None:
    run = stormproof("corrupt", tmp_path / "nothing", tmp_path / "out", "-c", "fog")
    assert run.returncode == 2
    assert "does not exist" in run.stderr
    (tmp_path / "empty").mkdir()
    run = stormproof("corrupt", tmp_path / "empty", tmp_path / "out", "-c", "fog")
    assert run.returncode == 2
    assert "contains no images" in run.stderr


@pytest.mark.skipif(
    not Path("/proc/self").exists(), reason="needs a folder nobody can write to, such as /proc"
)
def test_no_permission_is_one_line(photos: Path) -> None:
    run = stormproof("corrupt", photos, "/proc/out", "-c", "fog@1")
    assert run.returncode == 2
    assert "Cannot create /proc/out" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.skipif(shutil.which("mount") is None or os.geteuid() != 0, reason="needs to mount a small tmpfs")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_is_one_line(tmp_path: Path, workers: int) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for i in range(8):
        write_image(folder / f"{i}.png", make_image(i, (400, 400, 3)))
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], check=False).returncode:
        pytest.skip("mounting a tmpfs is not permitted here")
    try:
        run = stormproof("corrupt", folder, small / "out", "-c", "gaussian_noise@1", "-j", workers)
        assert run.returncode == 2
        assert "No space left" in run.stderr
        assert "Traceback" not in run.stderr
        assert not list(small.rglob("*.tmp"))
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_depth_of_a_dataset_reaches_the_corruption(tmp_path: Path, scenes: str) -> None:
    out = tmp_path / "hazy"
    run = stormproof("corrupt", scenes, out, "--conditions", "haze@1,haze@3", "-j", 1)
    assert run.returncode == 0, run.stderr
    assert stormproof("verify", out).returncode == 0
    made = {path.relative_to(out).parts[0]: read_image(path) for path in out.rglob("a.png")}
    assert made["haze@1"][0, 0, 0] in (60, 61)
    assert made["haze@3"][0, -1].tolist() == pytest.approx([205, 208, 211], abs=2)  # nothing comes through
    assert (np.diff(made["haze@3"][0, :, 0].astype(int)) >= 0).all()
    refused = stormproof("corrupt", scenes.split(",")[0], tmp_path / "no", "--conditions", "haze@1")
    assert refused.returncode == 2
    assert "depth=FOLDER" in refused.stderr


def test_the_next_corrupt_removes_what_a_killed_one_left(tmp_path: Path, photos: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    left = [out / ".a.png.0123456789ab.tmp", out / ".0123456789ab.tmp"]
    for path in left:
        path.write_bytes(b"half")
    (out / ".mine.tmp").write_bytes(b"someone's")
    run = stormproof("corrupt", photos, out, "-c", "contrast@1", "-j", 1, "--overwrite")
    assert run.returncode == 0, run.stderr
    assert not any(path.exists() for path in left)
    assert (out / ".mine.tmp").exists()


def test_verify_of_a_file_is_one_line(tmp_path: Path, photos: Path) -> None:
    run = stormproof("verify", photos / "a.png")
    assert run.returncode == 2
    assert "is not a run folder" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("key", "value"), [("path", ["a"]), ("path", "x" * 5000), ("path", "a\0b"), ("sha256", None)]
)
def test_refuses_a_manifest_with_invalid_entries(tmp_path: Path, key: str, value: object) -> None:
    entry = {
        "path": "a",
        "source": "a",
        "condition": "fog@1",
        "sha256": "0",
        "pixels_sha256": "0",
        key: value,
    }
    (tmp_path / "manifest.json").write_text(json.dumps({"files": [entry]}))
    run = stormproof("verify", tmp_path)
    assert run.returncode in (1, 2)
    assert "Traceback" not in run.stderr
