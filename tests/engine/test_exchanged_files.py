"""Files that are exchanged in the middle of a run: it is refused, whatever their names, sizes and times."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.runs import Configure
from helpers.scenes import write_scene
from stormproof.cli import app
from stormproof.core.errors import StoreError
from stormproof.core.imagefile import write_image
from stormproof.corruptions import corrupt_image
from stormproof.datasets import read_dataset
from stormproof.engine.config import RunConfig
from stormproof.engine.run import run
from stormproof.results.run import Run

IMAGES = 4


def swap(path: Path, write: Callable[[Path], None]) -> None:
    """Another content of the same size, with the times of the old one."""
    before = path.stat()
    write(path)
    with path.open("r+b") as file:
        assert path.stat().st_size <= before.st_size
        file.truncate(before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def bitmap(value: int) -> Callable[[Path], None]:
    return lambda path: write_image(path, np.full((48, 64, 3), value, np.uint8))


def refused(config: RunConfig, words: str) -> None:
    with pytest.raises(StoreError, match=words):
        run(config)


@pytest.fixture
def copies(scene: str, tmp_path: Path) -> Path:
    dataset = read_dataset(scene)
    for text in ("fog@2", "contrast@4"):
        (tmp_path / "copies" / text).mkdir(parents=True)
        for index in range(IMAGES):
            sample = dataset[index]
            made = corrupt_image(sample.image, text, seed=0, image_id=sample.id)
            write_image(tmp_path / "copies" / text / f"{index:03d}.bmp", made)
    return tmp_path / "copies"


def test_copies_are_identified_by_their_content(configure: Configure, copies: Path) -> None:
    usual = {"limit": IMAGES, "copies": str(copies)}
    run(configure(**usual, conditions=["fog@2"]))
    out = Path(configure().out)
    assert run(configure(**usual, conditions=["fog@2"])).complete
    swap(copies / "fog@2" / "001.bmp", bitmap(7))
    refused(configure(**usual), "other pixels: 2 under fog@2 of instances changed since")
    with pytest.raises(StoreError, match="2 under fog@2"):
        Run(out).check()
    shown = CliRunner().invoke(app, ["verify", str(out)])
    assert shown.exit_code == 1
    assert "2 under fog@2 changed since the run" in shown.stderr


def test_a_run_of_copies_refuses_changed_clean_images(
    configure: Configure, copies: Path, tmp_path: Path
) -> None:
    spec = write_scene(tmp_path / "own", images=IMAGES)
    usual = {"limit": IMAGES, "copies": str(copies), "data": spec}
    run(configure(**usual, conditions=["fog@2"]))
    write_image(tmp_path / "own" / "images" / "002.png", np.zeros((48, 64, 3), np.uint8))
    refused(configure(**usual), "other pixels: 3 of")


def test_textures_exchanged_while_a_run_is_going_on_stop_it(configure: Configure, tmp_path: Path) -> None:
    ice = tmp_path / "ice"
    ice.mkdir()
    bitmap(200)(ice / "a.bmp")
    config = configure(conditions=[f"frost@3[textures={ice}]"], chunk=1, limit=IMAGES)

    class Thief:
        def started(self, record: object, survey: object) -> None: ...

        def advanced(self, result: object) -> None:
            bitmap(90)(ice / "a.bmp")

        def ended(self, summary: object) -> None: ...

    with pytest.raises(StoreError, match="ice changed during the run"):
        run(config, [Thief()])
    assert len(list((Path(config.out) / "parts").iterdir())) == 1
    refused(config, "the content of .*ice was")


@pytest.mark.parametrize("kind", ["files", "world"])
def test_depth_is_identified_by_its_content(configure: Configure, tmp_path: Path, kind: str) -> None:
    """Maps of the same name, size and time: only their bytes differ."""
    names, size = [f"{index:03d}" for index in range(3)], (48, 64)
    if kind == "files":
        spec = write_scene(tmp_path / "deep", images=3)
    else:
        spec, size = "world:val,count=3,size=64x40", (40, 64)
        names = list(read_dataset(spec).ids)
    depth = tmp_path / "depth"
    for name in names:
        (depth / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(depth / f"{name}.npy", np.full(size, 20, np.float32))
    usual = {"data": f"{spec},depth={depth}", "chunk": 1}
    run(configure(**usual, conditions=["haze@3"], limit=2))
    assert run(configure(**usual, conditions=["haze@3"])).complete
    swap(depth / f"{names[1]}.npy", lambda path: np.save(path, np.full(size, 90, np.float32)))
    refused(configure(**usual, conditions=["haze@1-3"]), "was run on other pixels")
    shown = CliRunner().invoke(app, ["verify", configure().out])
    assert shown.exit_code == 1
    assert "changed since the run" in shown.stderr
    assert shown.stderr.count("changed since the run") == 1
