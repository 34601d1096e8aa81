"""Textures of ice for `frost`: five drawings, your own folder of images, or the reference's photographs.

assets/frost.py draws the five, with the size and brightness of the photographs behind the published scores.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from stormproof.core.errors import InvalidOption
from stormproof.core.imagefile import IMAGE_SUFFIXES, open_image, read_image
from stormproof.core.sample import Image, as_rgb

BUILT_IN = Path(__file__).with_name("frost")
PHOTOGRAPHS = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")


def _read_only(image: Image) -> Image:
    """Make an image read-only, since the caches return the same array to every caller."""
    image.flags.writeable = False
    return image


def from_folder(path: str | Path) -> tuple[Image, ...]:
    """Every image of a folder, sorted by name, as RGB; read again only if a file changes."""
    folder = Path(path).resolve()
    if not folder.is_dir():
        fix = "give 'built-in', 'imagecorruptions' or the path of a folder of images"
        raise InvalidOption(f"Frost textures: there is no folder {str(path)!r}; {fix}.")
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in IMAGE_SUFFIXES)
    if not files:
        known = ", ".join(sorted(IMAGE_SUFFIXES))
        raise InvalidOption(f"Frost textures: {str(path)!r} contains no images ({known}).")
    return _read(tuple((file, file.stat().st_mtime_ns, file.stat().st_size) for file in files))


@lru_cache(maxsize=2)
def _read(files: tuple[tuple[Path, int, int], ...]) -> tuple[Image, ...]:
    return tuple(_read_only(as_rgb(read_image(file))) for file, *_ in files)


@lru_cache(maxsize=1)
def _built_in() -> tuple[Image, ...]:
    return from_folder(BUILT_IN)


@lru_cache(maxsize=1)
def from_imagecorruptions() -> tuple[Image, ...]:
    """The five photographs that imagecorruptions chooses from; it never draws its sixth.

    The package is located, not imported: importing it takes seconds.
    """
    package = find_spec("imagecorruptions")
    if package is None or not package.submodule_search_locations:
        fix = "run 'pip install imagecorruptions', or use the textures 'built-in'"
        raise InvalidOption(f"Frost textures: 'imagecorruptions' is not installed; {fix}.")
    folder = Path(package.submodule_search_locations[0]) / "frost"
    return tuple(_read_only(_opaque(folder / name)) for name in PHOTOGRAPHS)


def _opaque(file: Path) -> Image:
    """An image's colours without its transparency, as OpenCV reads it."""
    with open_image(file) as image:
        return np.array(image.convert("RGB"))


def load(source: str) -> tuple[Image, ...]:
    """The textures of a source: "built-in", "imagecorruptions", or the path of a folder."""
    if source == "built-in":
        return _built_in()
    if source == "imagecorruptions":
        return from_imagecorruptions()
    return from_folder(source)
