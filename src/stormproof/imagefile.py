"""Image files on disk: read into H×W×3 or H×W uint8, ask for their size, write without half-written files.

Pixels are returned as they are stored. An EXIF orientation tag is not applied, because boxes, masks and
label maps are drawn on the stored pixels; rotating the image would separate it from its truth.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

from stormproof.errors import InvalidImage, OutputError
from stormproof.files import whole_file
from stormproof.sample import Image, check_image

# What counts as an image where a folder is searched for some.
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".pgm", ".tif", ".tiff"})

ImageSource = str | os.PathLike[str] | bytes

# What each Pillow mode becomes; a mode that is not here has more than 8 bits or an alpha channel.
_BECOMES = {
    "RGB": "RGB", "L": "L", "1": "L", "P": "RGB", "CMYK": "RGB", "YCbCr": "RGB", "LAB": "RGB", "HSV": "RGB",
}  # fmt: skip

# How each extension is written. PNG level 1 takes a third of the time of level 6 and 7 % more bytes.
_WRITTEN_AS: dict[str, tuple[str, dict[str, Any]]] = {
    ".png": ("PNG", {"compress_level": 1}),
    ".jpg": ("JPEG", {"quality": 95}),
    ".jpeg": ("JPEG", {"quality": 95}),
    ".bmp": ("BMP", {}),
}


@contextmanager
def opened(source: ImageSource, name: str | None = None) -> Iterator[PIL.Image.Image]:
    """The file as a Pillow image; whatever goes wrong inside becomes an `InvalidImage` naming the file."""
    name = _name(source, name)
    try:
        with PIL.Image.open(BytesIO(source) if isinstance(source, bytes) else source) as image:
            yield image
    except InvalidImage:
        raise
    except FileNotFoundError:
        raise InvalidImage(f"{name}: no such image file; check the path.") from None
    except PIL.UnidentifiedImageError:
        raise InvalidImage(f"{name}: not an image in a known format; save it as PNG or JPEG.") from None
    except (OSError, SyntaxError, ValueError, EOFError, PIL.Image.DecompressionBombError) as error:
        # Pillow reports a broken file as any of these, depending on the format.
        raise InvalidImage(f"{name}: cannot be decoded ({error}); fetch the file again.") from error


def read_image(source: ImageSource, name: str | None = None) -> Image:
    """Decode a file (or its bytes) to H×W×3 RGB or H×W grey, uint8.

    Palette, 1-bit and CMYK images are converted; images with transparency or more than 8 bits per
    channel are refused, because no conversion of them is the obvious one. `name` stands for bytes in
    error messages.
    """
    with opened(source, name) as image:
        mode = image.mode
        if mode.endswith(("A", "a")) or (mode == "P" and "transparency" in image.info):
            fix = "save it without, as plain RGB"
            raise InvalidImage(f"{_name(source, name)}: has transparency (mode {mode}); {fix}.")
        if mode not in _BECOMES:
            fix = "scale them to 0..255 and save as 8-bit"
            raise InvalidImage(f"{_name(source, name)}: pixels are not 8-bit (mode {mode}); {fix}.")
        target = _BECOMES[mode]
        return np.array(image if mode == target else image.convert(target), dtype=np.uint8)


def image_size(source: ImageSource, name: str | None = None) -> tuple[int, int]:
    """Height and width, read from the file's header without decoding any pixel."""
    with opened(source, name) as image:
        return image.height, image.width


def write_image(path: str | os.PathLike[str], image: Image) -> None:
    """Write a PNG, JPEG (quality 95) or BMP, by extension; the file appears whole or not at all."""
    path = Path(path)
    check_image(image, f"image for {path}")
    if path.suffix.lower() not in _WRITTEN_AS:
        known = ", ".join(_WRITTEN_AS)
        raise OutputError(f"Cannot write {path}: unknown extension {path.suffix!r}; use {known}.")
    file_format, options = _WRITTEN_AS[path.suffix.lower()]
    stored = PIL.Image.fromarray(image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image)
    with whole_file(path, durable=False) as file:
        stored.save(file, format=file_format, **options)


def _name(source: ImageSource, name: str | None) -> str:
    return name or ("image" if isinstance(source, bytes) else os.fspath(source))
