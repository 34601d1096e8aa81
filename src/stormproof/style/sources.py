"""Where styles come from: shipped images, looks by number, a folder, one image, or saved statistics."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

from stormproof.core.errors import InvalidCondition, InvalidImage, InvalidOption
from stormproof.core.files import list_files
from stormproof.core.imagefile import IMAGE_SUFFIXES, opened
from stormproof.core.randomness import Draw
from stormproof.core.sample import Image
from stormproof.style.looks import FOLDER, SUFFIX, draw_look, list_looks
from stormproof.style.names import BUILT_IN, DRAWN
from stormproof.style.networks import open_network
from stormproof.style.stylemap import StyleMap, draw_styles

STATISTICS = ".npz"


@lru_cache(maxsize=4)
def list_styles(source: str = BUILT_IN) -> dict[str, Path]:
    """Style files by name, sorted; a name is the path below the folder, so it means the same everywhere."""
    place = FOLDER if source == BUILT_IN else Path(source).expanduser()
    if place.is_file():
        return {place.name: place}
    if not place.is_dir():
        if looks := list_looks(source):
            return looks
        fix = "give a folder of images, an image, saved statistics (.npz), looks, or built-in"
        raise InvalidOption(f"Styles: {source!r} does not exist; {fix}.")
    found = {
        file.relative_to(place).as_posix(): file for file in list_files(place, IMAGE_SUFFIXES | {STATISTICS})
    }
    if not found:
        raise InvalidOption(
            f"Styles: {source!r} contains no images; put some there ({', '.join(sorted(IMAGE_SUFFIXES))})."
        )
    return found


def styles_for(draw: Draw, styles: str, stylemap: str, count: int = 1) -> list[tuple[str, Path]]:
    """Name and file of each style of an image: `count` drawn at random, or those that a map gives it."""
    found = list_styles(styles)
    if stylemap == DRAWN:
        names = draw_styles(draw, tuple(found), count)
    elif Path(stylemap).is_file():
        names = _map(stylemap, Path(stylemap).stat().st_mtime_ns).of(str(draw.identity[0]), found)
    else:
        raise InvalidCondition(
            f"style[stylemap={stylemap}]: no such file; give a style map, or leave it out."
        )
    return [(name, found[name]) for name in names]


@lru_cache(maxsize=4)
def _map(path: str, modified: int) -> StyleMap:
    return StyleMap.read(path)


def read_style(path: Path) -> Image:
    """A style image as RGB, whatever its mode.

    Transparent pixels are put on white, and deeper pixels are scaled to 8 bits. Test images like these are
    refused, because a conversion would change the test; a style may be converted.
    """
    if path.suffix == SUFFIX:
        return draw_look(path.stem)
    with opened(path) as shown:
        mode = shown.mode
        if mode in ("I", "F") or mode.startswith("I;16"):
            values = np.asarray(shown, np.float64)
            top = 65535 if mode.startswith("I") else max(float(values.max()), 1e-9)
            shown = PIL.Image.fromarray(np.clip(values / top * 255, 0, 255).astype(np.uint8))
        if mode.endswith(("A", "a")) or "transparency" in shown.info:
            above = shown.convert("RGBA")
            paper = PIL.Image.new("RGBA", above.size, "white")
            shown = PIL.Image.alpha_composite(paper, above)
        image = np.array(shown.convert("RGB"), np.uint8)
    if image.size == 0:
        raise InvalidImage(f"{path}: has no pixels; give another style.")
    return image


@lru_cache(maxsize=100_000)
def check_style(path: Path) -> str | None:
    """Why a style cannot be used, judged by its header alone; None if it looks usable."""
    if path.suffix.lower() in (STATISTICS, SUFFIX):
        return None
    try:
        with opened(path):
            return None
    except InvalidImage as error:
        return str(error)


def encoded_style(network: str, path: Path) -> Any:
    """A style encoded by a network, once per process until its file changes."""
    if path.suffix == SUFFIX:
        return _encoded(network, str(path), 0, 0)
    try:
        status = path.stat()
    except OSError as error:
        raise InvalidOption(f"{path}: the style cannot be read ({error.strerror}).") from None
    return _encoded(network, str(path), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1024)
def _encoded(network: str, path: str, modified: int, size: int) -> Any:
    found = open_network(network)
    if Path(path).suffix.lower() == STATISTICS:
        return found.load_style(Path(path))
    return found.encode_style(read_style(Path(path)))
