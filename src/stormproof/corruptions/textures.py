"""The ice that `frost` lays over an image: five drawn pictures, a folder of one's own, or the reference's.

The five are drawn by assets/frost.py, sized and lit like the photographs that the published scores used.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from stormproof.errors import InvalidOption
from stormproof.imagefile import opened, read_image
from stormproof.sample import Image

BUILT_IN = Path(__file__).with_name("frost")
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff"})
PHOTOGRAPHS = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")


def _kept(picture: Image) -> Image:
    """The picture, closed to writing: the caches hand the same array to everyone."""
    picture.flags.writeable = False
    return picture


def from_folder(path: str | Path) -> tuple[Image, ...]:
    """Every picture of a folder in the order of their names, as RGB; read again only when one changes."""
    folder = Path(path).resolve()
    if not folder.is_dir():
        fix = "give 'built-in', 'imagecorruptions' or the path of a folder of pictures"
        raise InvalidOption(f"Frost textures: no folder {str(path)!r}; {fix}.")
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES)
    if not files:
        known = ", ".join(sorted(SUFFIXES))
        raise InvalidOption(f"Frost textures: no pictures in {str(path)!r}; put some there ({known}).")
    return _read(tuple((file, file.stat().st_mtime_ns, file.stat().st_size) for file in files))


@lru_cache(maxsize=2)
def _read(files: tuple[tuple[Path, int, int], ...]) -> tuple[Image, ...]:
    return tuple(_kept(_rgb(read_image(file))) for file, *_ in files)


@lru_cache(maxsize=1)
def _built_in() -> tuple[Image, ...]:
    return from_folder(BUILT_IN)


def _rgb(picture: Image) -> Image:
    return np.repeat(picture[..., None], 3, axis=2) if picture.ndim == 2 else picture


@lru_cache(maxsize=1)
def from_imagecorruptions() -> tuple[Image, ...]:
    """The five photographs that imagecorruptions chooses from; its sixth is never drawn.

    The package is located, not imported: importing it takes seconds and much that pictures do not need.
    """
    package = find_spec("imagecorruptions")
    if package is None or not package.submodule_search_locations:
        fix = "run 'pip install imagecorruptions', or use the textures 'built-in'"
        raise InvalidOption(f"Frost textures: 'imagecorruptions' is not installed; {fix}.")
    folder = Path(package.submodule_search_locations[0]) / "frost"
    return tuple(_kept(_opaque(folder / name)) for name in PHOTOGRAPHS)


def _opaque(file: Path) -> Image:
    """A picture's colours, its transparency ignored, as OpenCV reads it."""
    with opened(file) as picture:
        return np.array(picture.convert("RGB"))


def load(source: str) -> tuple[Image, ...]:
    """The pictures of a source: "built-in", "imagecorruptions", or the path of a folder."""
    if source == "built-in":
        return _built_in()
    if source == "imagecorruptions":
        return from_imagecorruptions()
    return from_folder(source)
