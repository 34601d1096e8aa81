"""Where styles come from: shipped images, looks by number, a folder, one image, or saved statistics."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

from stormproof.core.errors import InvalidImage, InvalidOption
from stormproof.core.files import list_files
from stormproof.core.imagefile import IMAGE_SUFFIXES, opened
from stormproof.core.sample import Image
from stormproof.style.looks import FOLDER, SUFFIX, draw_look, list_looks
from stormproof.style.names import BUILT_IN
from stormproof.style.networks import open_network

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
            f"Styles: {source!r} holds no images; put some there ({', '.join(sorted(IMAGE_SUFFIXES))})."
        )
    return found


def read_style(path: Path) -> Image:
    """A style image as RGB of at least 2×2 pixels, whatever its mode.

    What is transparent is shown on white paper; more than 8 bits are scaled down. Both are refused for
    images to be tested, where a conversion would change the test, but a style is only a look.
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


def check_style(path: Path) -> str | None:
    """Why a style cannot be used, from its header alone; None if it looks usable."""
    if path.suffix.lower() in (STATISTICS, SUFFIX):
        return None
    try:
        with opened(path):
            return None
    except InvalidImage as error:
        return str(error)


def encoded_style(network: str, path: Path) -> Any:
    """A style as a network knows it; encoded once per process while its file stays as it is."""
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
