"""Image files: reads them as uint8 H×W×3 or H×W, reads their size, writes them atomically.

Pixels are returned as stored. Where there is a choice (EXIF orientation, the colour behind transparent
pixels, which 8 of 16 bits to keep), `PixelRules` declares it or the file is refused.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
import PIL.Image
import PIL.ImageFile
import PIL.ImageOps

from stormproof.core.errors import InvalidImage, InvalidOption, OutputError, StormproofError
from stormproof.core.files import open_regular, read_bytes, whole_file
from stormproof.core.loading import framework
from stormproof.core.sample import Image, check_image

# Files with these suffixes count as images when a folder is searched.
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".pgm", ".tif", ".tiff"})

# Formats that are read, recognised by content and not by name. Pillow knows many more, some of which start
# other programs (EPS) or have rarely used readers.
_FORMATS = ("JPEG", "PNG", "BMP", "WEBP", "PPM", "TIFF", "GIF")
_MANY_PIXELS = 89_478_485  # Pillow's default: it warns of more, and refuses twice as many
MAX_PIXELS = 2 * _MANY_PIXELS  # of a file, and of truth
MAX_BYTES = 4 << 30  # of a file: more than MAX_PIXELS take uncompressed

ImageSource = str | os.PathLike[str] | bytes


@dataclass(frozen=True, slots=True)
class PixelRules:
    """How stored pixels become 8-bit RGB where there is a choice; the defaults never guess.

    `exif="apply"` rotates an image by its orientation tag, for datasets labelled in that orientation.
    `alpha` says what transparent pixels show: their stored colour (`drop`), or a `white` or `black`
    background; a fully opaque image needs no rule. `bits` is how many bits a 16-bit file uses: the upper
    eight are kept. `decode="nvjpeg"` decodes JPEG files on a GPU; its pixels may differ from libjpeg's.
    `exif_stated` says whether the user chose `exif`: if not, checks ask about images with a tag.
    """

    exif: Literal["ignore", "apply"] = "ignore"
    alpha: Literal["refuse", "drop", "white", "black"] = "refuse"
    bits: Literal[0, 9, 10, 11, 12, 13, 14, 15, 16] = 0
    decode: Literal["libjpeg", "nvjpeg"] = "libjpeg"
    exif_stated: bool = field(default=False, compare=False)

    def identity(self) -> dict[str, Any]:
        """The rules as part of a dataset's fingerprint; `decode` appears only if it is not the default."""
        rules = {name: rule for name, rule in asdict(self).items() if name != "exif_stated"}
        return {name: rule for name, rule in rules.items() if name != "decode" or rule == "nvjpeg"}


AS_STORED = PixelRules()
_ORIENTATION = 0x0112
_NO_NVJPEG = "leave decode=nvjpeg out"
_TURNED = (5, 6, 7, 8)  # orientations that exchange height and width
_BEHIND = {"white": 255, "black": 0}

# What each Pillow mode becomes; modes not listed have more than 8 bits or an alpha channel.
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


_lock = threading.Lock()
_readers = 0  # threads that read an image now
_theirs: tuple[bool, int | None] = (False, None)


@contextmanager
def _own_settings() -> Iterator[None]:
    """Pillow's process-wide settings as we need them; afterwards those that the model's code may have made.

    With LOAD_TRUNCATED_IMAGES a file cut short would be read as partly grey, without a word.
    """
    global _readers, _theirs
    with _lock:
        if _readers == 0:
            _theirs = (PIL.ImageFile.LOAD_TRUNCATED_IMAGES, PIL.Image.MAX_IMAGE_PIXELS)
            PIL.ImageFile.LOAD_TRUNCATED_IMAGES, PIL.Image.MAX_IMAGE_PIXELS = False, _MANY_PIXELS
        _readers += 1
    try:
        yield
    finally:
        with _lock:
            _readers -= 1
            if _readers == 0:
                PIL.ImageFile.LOAD_TRUNCATED_IMAGES, PIL.Image.MAX_IMAGE_PIXELS = _theirs


@contextmanager
def open_image(source: ImageSource, name: str | None = None) -> Iterator[PIL.Image.Image]:
    """Open a file as a Pillow image; any failure inside becomes an `InvalidImage` that names the file."""
    name = _name(source, name)
    try:
        stored = (
            BytesIO(source)
            if isinstance(source, bytes)
            else open_regular(Path(source), at_most=MAX_BYTES, error=InvalidImage)
        )
        with _own_settings(), stored as file, PIL.Image.open(file, formats=_FORMATS) as image:
            yield image
    except StormproofError:
        raise
    except PIL.UnidentifiedImageError:
        raise InvalidImage(f"{name}: not an image in a known format; save it as PNG or JPEG.") from None
    except Exception as error:  # each of Pillow's readers fails in its own way
        raise InvalidImage(f"{name}: cannot be decoded ({error}); fetch the file again.") from error


def read_image(source: ImageSource, name: str | None = None, rules: PixelRules = AS_STORED) -> Image:
    """Decode a file (or its bytes) to H×W×3 RGB or H×W grey, uint8.

    Palette, 1-bit and CMYK images are converted. Images with transparent pixels or more than 8 bits per
    channel are converted by `rules`, or refused if these do not say how. `name` names bytes in errors.
    """
    name = _name(source, name)
    with open_image(source, name) as image:
        if rules.decode == "nvjpeg" and image.format == "JPEG":
            return _decode_on_gpu(source if isinstance(source, bytes) else read_bytes(Path(source)), name)
        turned = PIL.ImageOps.exif_transpose(image) if rules.exif == "apply" else image
        if turned.mode.endswith(("A", "a")) or "transparency" in turned.info:
            return _flatten(turned, rules, name)
        if turned.mode not in _BECOMES:
            return _eight_bits(turned, rules, name)
        target = _BECOMES[turned.mode]
        return np.array(turned if turned.mode == target else turned.convert(target), dtype=np.uint8)


def _flatten(image: PIL.Image.Image, rules: PixelRules, name: str) -> Image:
    """Convert an image with transparency to RGB."""
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
    """Keep the upper 8 of the bits that a file uses."""
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
    """Height and width from the file's header, without decoding pixels."""
    with open_image(source, name) as image:
        turned = rules.exif == "apply" and image.getexif().get(_ORIENTATION) in _TURNED
        return (image.width, image.height) if turned else (image.height, image.width)


def image_header(source: ImageSource) -> tuple[tuple[int, int], int]:
    """Height and width as stored, and the EXIF orientation (1: upright), without decoding pixels."""
    with open_image(source) as image:
        tag = image.getexif().get(_ORIENTATION)
        return (image.height, image.width), tag if isinstance(tag, int) else 1


def write_image(path: str | os.PathLike[str], image: Image, *, quality: int = 95) -> None:
    """Write a PNG, JPEG (of that quality) or BMP, by extension, atomically."""
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


def require_nvjpeg() -> None:
    """Raise an error if this machine has no nvJPEG decoder."""
    torch, _ = _torch_libraries()
    if not torch.cuda.is_available():
        raise InvalidOption(f"decode=nvjpeg: torch {torch.__version__} finds no NVIDIA GPU; {_NO_NVJPEG}.")


def _decode_on_gpu(data: bytes, name: str) -> Image:
    """Decode JPEG bytes by nvJPEG to H×W×3, or H×W for a grey file, in host memory."""
    torch, io = _torch_libraries()
    stored = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    try:
        planes = io.decode_jpeg(stored, device="cuda")
    except RuntimeError as error:
        why = str(error).splitlines()[0]
        raise InvalidImage(f"{name}: nvJPEG cannot decode it ({why}); {_NO_NVJPEG}.") from error
    pixels: Image = np.ascontiguousarray(planes.permute(1, 2, 0).cpu().numpy())
    return pixels[..., 0] if pixels.shape[2] == 1 else pixels


def _torch_libraries() -> tuple[Any, Any]:
    return framework("torch", extra="torchvision"), framework("torchvision.io", extra="torchvision")
