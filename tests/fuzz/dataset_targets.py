"""Datasets with one file changed, and what the other targets lay their files out with."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from functools import lru_cache
from io import BytesIO
from pathlib import Path

import numpy as np
import PIL.Image

from fuzz.mutate import flip, json_bytes, mutate
from helpers.tiny_datasets import BUILDERS
from stormproof.core.errors import StormproofError
from stormproof.datasets import read_dataset

Case = Callable[[random.Random, Path], None]


@lru_cache(maxsize=1)
def seeds() -> dict[str, tuple[str, dict[str, bytes]]]:
    """Tiny correct datasets of every format: the spec, with a mark for the folder, and the files."""
    found = {}
    for kind, build in BUILDERS.items():
        if kind == "world":  # has no files
            continue
        root = Path(tempfile.mkdtemp())
        spec = build(root).replace(str(root), "ROOT")
        files = {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
        shutil.rmtree(root)
        found[kind] = spec, files
    return found


_POLYGONS = {"imgHeight": 24, "imgWidth": 32, "objects": [
    {"label": "car", "polygon": [[1, 1], [9, 1], [9, 9]]},
    {"label": "persongroup", "polygon": [[2, 2], [5, 2], [5, 7]]},
]}  # fmt: skip
_CALIBRATION = b"P2: 7e2 0 6e2 4e1 0 7e2 2e2 1 0 0 1 0\nP3: 7e2 0 6e2 -3e2 0 7e2 2e2 1 0 0 1 0\n"


def polygons(dice: random.Random, folder: Path) -> None:
    _, files = seeds()["cityscapes"]
    images = {name: content for name, content in files.items() if name.startswith("leftImg8bit")}
    labels = [
        n.replace("leftImg8bit.png", "gtFine_polygons.json").replace("leftImg8bit", "gtFine", 1)
        for n in images
    ]
    lay({**images, **{name: mutate(name, json_bytes(_POLYGONS), dice) for name in labels}}, folder)
    dataset = read_dataset(f"cityscapes:{folder}")
    dataset.size(0)
    dataset[0]


def context(dice: random.Random, folder: Path) -> None:
    """Depth, disparity and calibration beside images."""
    plane = BytesIO()
    PIL.Image.fromarray(np.full((24, 32), 900, np.uint16)).save(plane, "PNG")
    camera = json_bytes(
        {"extrinsic": {"baseline": 0.2}, "intrinsic": {"fx": 700, "fy": 700, "u0": 16, "v0": 12}}
    )
    calibration = dice.choice((("c/a.txt", _CALIBRATION), ("c/a.json", camera)))
    files = dict([("i/a.png", seeds()["images"][1]["b.png"]), ("d/a.png", plane.getvalue()), calibration])
    name = dice.choice(("d/a.png", calibration[0]))
    lay({**files, name: mutate(name, files[name], dice)}, folder)
    read_dataset(f"images:{folder}/i,disparity={folder}/d,calib={folder}/c")[0]


def arrays(dice: random.Random, folder: Path) -> None:
    """Depth in NumPy's own format."""
    plane = BytesIO()
    np.save(plane, np.full((24, 32), 9, dice.choice((np.float32, np.uint16, np.float64))))
    content = plane.getvalue()
    what = dice.random()
    if what < 0.5:  # the header alone
        end = content.index(b"\n") + 1
        content = flip(content[:end], dice) + content[end:]
    elif what < 0.8:
        shape = dice.choice(_SHAPES)
        descr = dice.choice(("<f4", "|O", "<f999", "<i8", "V9", "<U9", "?", ">c16", "m8[s]"))
        header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        magic = b"\x93NUMPY" + bytes((dice.choice((1, 2, 3, 9)), dice.choice((0, 0, 0, 7))))
        content = magic + len(header).to_bytes(2, "little") + header + bytes(dice.choice((0, 24, 3072)))
    else:
        content = flip(content, dice)
    lay({"i/a.png": seeds()["images"][1]["b.png"], "d/a.npy": content}, folder)
    read_dataset(f"images:{folder}/i,depth={folder}/d")[0]


_SHAPES = (
    "(24, 32)", "(32, 24)", "(10**9, 10**9)", f"({10**400},)", "(100000, 100000)", "(-1, -768)", "()",
    "(0, 0)", "(24, 32, 1)", "[24, 32]", "'x'", "(24, None)", "(True, 768)", "(2.0, 3)", "((1,),)",
    "(" * 3000,
)  # fmt: skip


def lay(files: dict[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def dataset(kind: str) -> Case:
    def case(dice: random.Random, folder: Path) -> None:
        spec, files = seeds()[kind]
        # The label files are the interesting ones; an image is changed less often.
        weights = [1 if name.endswith((".png", ".jpg", ".bmp")) else 4 for name in files]
        name = dice.choices(list(files), weights)[0]
        lay({**files, name: mutate(name, files[name], dice)}, folder)
        dataset = read_dataset(spec.replace("ROOT", str(folder)))
        for i in range(min(len(dataset), 4)):
            quietly(lambda i=i: dataset.truth(i))
            quietly(lambda i=i: dataset[i])
            quietly(lambda i=i: dataset.size(i))
        quietly(lambda: dataset.fingerprint)

    return case


def quietly(call: Callable[[], object]) -> None:
    """One of our errors ends a call, not the whole case."""
    try:
        call()
    except StormproofError:
        return
