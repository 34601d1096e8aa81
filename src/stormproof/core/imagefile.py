"""Image files on disk: read into H×W×3 or H×W uint8, ask for their size, write without half-written files.

Pixels are returned as they are stored. What is not obvious is done by a declared rule (`PixelRules`) or
refused: whether an EXIF orientation is applied, what lies behind transparent pixels, which eight of many bits
are kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
import PIL.Image
import PIL.ImageOps

from stormproof.core.errors import InvalidImage, OutputError, StormproofError
from stormproof.core.files import whole_file
from stormproof.core.nvjpeg import decode_on_gpu
from stormproof.core.sample import Image, check_image

# What counts as an image where a folder is searched for some.
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".pgm", ".tif", ".tiff"})

# What is read, by what a file begins with, whatever it is called. Pillow knows many more formats, among
# them some that start other programs (EPS) and some whose readers are little used.
_FORMATS = ("JPEG", "PNG", "BMP", "WEBP", "PPM", "TIFF", "GIF")
MAX_PIXELS = 2 * (PIL.Image.MAX_IMAGE_PIXELS or 0)  # where Pillow refuses a file; no truth is larger either

ImageSource = str | os.PathLike[str] | bytes


@dataclass(frozen=True, slots=True)
class PixelRules:
    """How stored pixels become 8-bit RGB where that is not obvious; the defaults guess nothing.

    `exif="apply"` turns an image as its orientation tag says, for datasets whose labels were drawn so.
    `alpha` says what transparent pixels show: `drop` their stored colour, or `white` or `black` behind them;
    a fully opaque image needs no rule. `bits` is how many bits a 16-bit file uses: the upper eight are kept.
    `decode="nvjpeg"` has JPEG files decoded on a GPU, whose pixels need not be libjpeg's.
    """

    exif: Literal["ignore", "apply"] = "ignore"
    alpha: Literal["refuse", "drop", "white", "black"] = "refuse"
    bits: Literal[0, 9, 10, 11, 12, 13, 14, 15, 16] = 0
    decode: Literal["libjpeg", "nvjpeg"] = "libjpeg"

    def identity(self) -> dict[str, Any]:
        """What tells datasets apart; a rule that came later is named only where it is not as ever."""
        return {name: rule for name, rule in asdict(self).items() if name != "decode" or rule == "nvjpeg"}


AS_STORED = PixelRules()
_ORIENTATION = 0x0112
_TURNED = (5, 6, 7, 8)  # orientations that exchange height and width
_BEHIND = {"white": 255, "black": 0}

# What each Pillow mode becomes; a mode that is not here has more than 8 bits or an alpha channel.
_BECOMES = {
    "RGB": "RGB", "L": "L", "1": "L", "P": "RGB", "CMYK": "RGB", "YCbCr": "RGB", "LAB": "RGB", "HSV": "RGB",
}  # fmt: skip

# How each extension is written. PNG level 1 takes a third of the time of level 6 and 7 % more bytes.
_WRITTEN_AS: dict[str, tuple[str, dict[str, Any]]] = {
    ".png": ("PNG", {"compress_level": 1}),
    ".jpg": ("JPEG", {}),
    ".jpeg": ("JPEG", {}),
    ".bmp": ("BMP", {}),
}


@contextmanager
def opened(source: ImageSource, name: str | None = None) -> Iterator[PIL.Image.Image]:
    """The file as a Pillow image; whatever goes wrong inside becomes an `InvalidImage` naming the file."""
    name = _name(source, name)
    try:
        with PIL.Image.open(
            BytesIO(source) if isinstance(source, bytes) else source, formats=_FORMATS
        ) as image:
            yield image
    except StormproofError:
        raise
    except FileNotFoundError:
        raise InvalidImage(f"{name}: no such image file; check the path.") from None
    except PIL.UnidentifiedImageError:
        raise InvalidImage(f"{name}: not an image in a known format; save it as PNG or JPEG.") from None
    except Exception as error:  # a broken file makes each of Pillow's readers raise something else
        raise InvalidImage(f"{name}: cannot be decoded ({error}); fetch the file again.") from error


def read_image(source: ImageSource, name: str | None = None, rules: PixelRules = AS_STORED) -> Image:
    """Decode a file (or its bytes) to H×W×3 RGB or H×W grey, uint8.

    Palette, 1-bit and CMYK images are converted; what has transparent pixels or more than 8 bits per
    channel is converted by `rules`, and refused where they do not say how. `name` stands for bytes in
    error messages.
    """
    name = _name(source, name)
    with opened(source, name) as image:
        if rules.decode == "nvjpeg" and image.format == "JPEG":
            return decode_on_gpu(source if isinstance(source, bytes) else Path(source).read_bytes(), name)
        turned = PIL.ImageOps.exif_transpose(image) if rules.exif == "apply" else image
        if turned.mode.endswith(("A", "a")) or "transparency" in turned.info:
            return _flattened(turned, rules, name)
        if turned.mode not in _BECOMES:
            return _eight_bits(turned, rules, name)
        target = _BECOMES[turned.mode]
        return np.array(turned if turned.mode == target else turned.convert(target), dtype=np.uint8)


def _flattened(image: PIL.Image.Image, rules: PixelRules, name: str) -> Image:
    """An image with transparency as RGB."""
    layers = np.array(image.convert("RGBA"), dtype=np.uint8)
    colours, alpha = layers[..., :3], layers[..., 3:]
    if rules.alpha == "drop" or alpha.min() == 255:
        return np.ascontiguousarray(colours)
    if rules.alpha == "refuse":
        fix = "add alpha=drop, alpha=white or alpha=black to the dataset, or save it as plain RGB"
        raise InvalidImage(f"{name}: has transparent pixels (mode {image.mode}); {fix}.")
    share = alpha.astype(np.uint32)
    mixed = colours * share + _BEHIND[rules.alpha] * (255 - share)
    return ((mixed + 127) // 255).astype(np.uint8)


def _eight_bits(image: PIL.Image.Image, rules: PixelRules, name: str) -> Image:
    """A file of more than 8 bits per pixel: the upper eight of those that it uses."""
    if not image.mode.startswith("I") or not rules.bits:
        fix = "add bits=16 (or as many as are used) to the dataset, or save it as 8-bit"
        raise InvalidImage(f"{name}: pixels are not 8-bit (mode {image.mode}); {fix}.")
    values = np.array(image).astype(np.int64)
    if values.min() < 0 or values.max() >= 1 << rules.bits:
        fix = f"bits={rules.bits} means 0 to {(1 << rules.bits) - 1}"
        raise InvalidImage(f"{name}: pixels run from {values.min()} to {values.max()}; {fix}.")
    return (values >> (rules.bits - 8)).astype(np.uint8)


def image_size(
    source: ImageSource, name: str | None = None, rules: PixelRules = AS_STORED
) -> tuple[int, int]:
    """Height and width, read from the file's header without decoding any pixel."""
    with opened(source, name) as image:
        turned = rules.exif == "apply" and image.getexif().get(_ORIENTATION) in _TURNED
        return (image.width, image.height) if turned else (image.height, image.width)


def write_image(path: str | os.PathLike[str], image: Image, *, quality: int = 95) -> None:
    """Write a PNG, JPEG (of that quality) or BMP, by extension; the file appears whole or not at all."""
    path = Path(path)
    check_image(image, f"image for {path}")
    if path.suffix.lower() not in _WRITTEN_AS:
        known = ", ".join(_WRITTEN_AS)
        raise OutputError(f"Cannot write {path}: unknown extension {path.suffix!r}; use {known}.")
    file_format, options = _WRITTEN_AS[path.suffix.lower()]
    options = options | {"quality": quality} if file_format == "JPEG" else options
    stored = PIL.Image.fromarray(image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image)
    with whole_file(path, durable=False) as file:
        stored.save(file, format=file_format, **options)


def _name(source: ImageSource, name: str | None) -> str:
    return name or ("image" if isinstance(source, bytes) else os.fspath(source))
