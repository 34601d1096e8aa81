"""Styles: where they come from, and which one an image gets.

A style is a shipped image, an image of a folder, saved statistics, or a numbered look: a rotated, recoloured
crop of a shipped image, the same on every machine. Half of the looks take the broad patches of a second one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import cv2
import numpy as np
import PIL.Image

from stormproof import __version__
from stormproof.core.errors import InvalidCondition, InvalidImage, InvalidOption
from stormproof.core.files import list_files, read_json, write_json
from stormproof.core.imagefile import IMAGE_SUFFIXES, open_image
from stormproof.core.randomness import Draw
from stormproof.core.sample import Image
from stormproof.style.layers import Field
from stormproof.style.networks import open_network
from stormproof.style.recipe import BUILT_IN, DRAWN

StyleMap = Mapping[str, tuple[str, ...]]  # the styles of each image
FOLDER = Path(__file__).with_name("images")
STATISTICS = ".npz"
LOOK = ".look"  # the suffix of a style that is not a file
LOOKS = 300
_LOOKS_NAMED = re.compile(r"looks(?:-([1-9][0-9]{0,5}))?")
_SIDE = 384  # of a look, in pixels
_BROAD = 20.0  # pixels: larger features are patches, smaller ones strokes


@lru_cache(maxsize=4)
def list_styles(source: str = BUILT_IN) -> dict[str, Path]:
    """Style files by name, sorted; a name is the path below the folder, so it means the same everywhere."""
    place = FOLDER if source == BUILT_IN else Path(source).expanduser()
    if place.is_file():
        return {place.name: place}
    if not place.is_dir():
        if looks := _list_looks(source):
            return looks
        fix = "give a folder of images, an image, saved statistics (.npz), looks, or built-in"
        raise InvalidOption(f"Styles: {source!r} does not exist; {fix}.")
    files = {
        file.relative_to(place).as_posix(): file for file in list_files(place, IMAGE_SUFFIXES | {STATISTICS})
    }
    if not files:
        raise InvalidOption(
            f"Styles: {source!r} contains no images; put some there ({', '.join(sorted(IMAGE_SUFFIXES))})."
        )
    return files


def _list_looks(source: str) -> dict[str, Path] | None:
    """The looks that `looks` or `looks-50` names; None if `source` is something else.

    >>> list(_list_looks("looks-2"))
    ['look-000000', 'look-000001']
    """
    match = _LOOKS_NAMED.fullmatch(source)
    if match is None:
        return None
    names = [f"look-{k:06d}" for k in range(int(match[1] or LOOKS))]
    return {name: FOLDER / f"{name}{LOOK}" for name in names}


def styles_for(draw: Draw, styles: str, stylemap: str, count: int = 1) -> list[tuple[str, Path]]:
    """Name and file of each style of an image: `count` drawn at random, or those that a map gives it."""
    files = list_styles(styles)
    if stylemap == DRAWN:
        names = draw_styles(draw, tuple(files), count)
    elif Path(stylemap).is_file():
        known = _map(stylemap, Path(stylemap).stat().st_mtime_ns)
        names = find_in_map(known, str(draw.identity[0]), files)
    else:
        raise InvalidCondition(
            f"style[stylemap={stylemap}]: no such file; give a style map, or leave it out."
        )
    return [(name, files[name]) for name in names]


@lru_cache(maxsize=4)
def _map(path: str, modified: int) -> StyleMap:
    return read_style_map(path)


def draw_styles(draw: Draw, names: Sequence[str], count: int = 1) -> tuple[str, ...]:
    """`count` different styles, each equally likely, as in stylize-datasets."""
    if not 1 <= count <= len(names):
        raise InvalidOption(
            f"{count} styles per image: there are {len(names)} styles; ask for 1 to {len(names)}."
        )
    moved: dict[int, int] = {}  # a shuffle that stores only the entries it moved
    chosen = []
    for k, share in enumerate(draw.uniforms("style", count)):
        at = min(k + int(share * (len(names) - k)), len(names) - 1)
        chosen.append(names[moved.get(at, at)])
        moved[at] = moved.get(k, k)
    return tuple(chosen)


def style_draw(seed: int, image_id: str) -> Draw:
    """The draw of the condition `style[…]`, so that stored copies and conditions on the fly agree."""
    return Draw.keyed(seed, image_id, "style", 0)


def read_style_map(path: str | Path) -> StyleMap:
    """Read the format of `write_style_map`, or the plain image → style JSON of the object-centric study. An
    image is named by its sample id or its file name; either finds it."""
    content = read_json(Path(path), error=InvalidOption)
    rows = content.get("styles", content) if isinstance(content, dict) else None
    if not isinstance(rows, dict) or not rows:
        raise InvalidOption(f"{path}: a style map is an object of image: style pairs.")
    styles = {}
    for name, given in rows.items():
        chosen = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list) else ()
        if not chosen or not all(isinstance(style, str) for style in chosen):
            raise InvalidOption(f"{path}: the style of {name!r} is {given!r}; give a file name.")
        styles[str(name)] = chosen
    return {_plain(name): chosen for name, chosen in styles.items()} | styles


def write_style_map(path: Path, styles: StyleMap, seed: int) -> None:
    listed = {name: list(chosen) for name, chosen in sorted(styles.items())}
    write_json(path, {"stormproof": __version__, "seed": seed, "styles": listed})


def find_in_map(known: StyleMap, image_id: str, names: Mapping[str, object]) -> tuple[str, ...]:
    """The styles of an image, as names in `names`."""
    styles = known.get(image_id) or known.get(_plain(image_id))
    if not styles:
        fix = "draw a new map, or add the image to it"
        raise InvalidOption(f"The style map does not say which style {image_id!r} gets; {fix}.")
    by_file_name = {PurePosixPath(name).name: name for name in names}
    found = [style if style in names else by_file_name.get(PurePosixPath(style).name) for style in styles]
    if None in found:
        missing = styles[found.index(None)]
        raise InvalidOption(f"The style map names {missing!r}, which is not among the {len(names)} styles.")
    return tuple(name for name in found if name is not None)


def _plain(name: str) -> str:
    """A key that an image's id and its file name share: 139 and 000000000139.jpg are the same."""
    stem = PurePosixPath(name).stem
    return stem.lstrip("0") or "0" if stem.isdigit() else stem


def read_style(path: Path) -> Image:
    """A style image as RGB, whatever its mode.

    Transparent pixels are put on white, and deeper pixels are scaled to 8 bits. Test images like these are
    refused, because a conversion would change the test; a style may be converted.
    """
    if path.suffix == LOOK:
        return _draw_look(path.stem)
    with open_image(path) as shown:
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
    if path.suffix.lower() in (STATISTICS, LOOK):
        return None
    try:
        with open_image(path):
            return None
    except InvalidImage as error:
        return str(error)


def encoded_style(network: str, path: Path) -> Any:
    """A style encoded by a network, once per process until its file changes."""
    if path.suffix == LOOK:
        return _encode(network, str(path), 0, 0)
    try:
        status = path.stat()
    except OSError as error:
        raise InvalidOption(f"{path}: the style cannot be read ({error.strerror}).") from None
    return _encode(network, str(path), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1024)
def _encode(network: str, path: str, modified: int, size: int) -> Any:
    opened = open_network(network)
    if Path(path).suffix.lower() == STATISTICS:
        return opened.load_style(Path(path))
    return opened.encode_style(read_style(Path(path)))


def _draw_look(name: str) -> Image:
    """The look of that name, a square RGB image."""
    draw = Draw.keyed(0, "look", name)
    look = _cut(draw, "first")
    if draw.uniform("mixed") < 0.5:
        look = _combine(look, _cut(draw, "second"))
    return np.clip(np.rint(_recolour(draw, look)), 0, 255).astype(np.uint8)


@lru_cache(maxsize=1)
def _shipped_images() -> tuple[Image, ...]:
    opened = (PIL.Image.open(path) for path in sorted(FOLDER.glob("*.jpg")))
    return tuple(np.asarray(image.convert("RGB"), np.uint8) for image in opened)


def _cut(draw: Draw, which: str) -> Field:
    """A square crop of one image, rotated and mirrored; the smaller it is, the broader its strokes become."""
    images = _shipped_images()
    image = images[draw.integer(f"{which} image", len(images))]
    side = round(min(image.shape[:2]) * draw.uniform(f"{which} size", 0.4, 1.0))
    top, left = (
        draw.integer(f"{which} {axis}", n - side + 1) for axis, n in zip("yx", image.shape, strict=False)
    )
    turned = np.rot90(image[top : top + side, left : left + side], draw.integer(f"{which} turn", 4))
    if draw.uniform(f"{which} mirror") < 0.5:
        turned = turned[:, ::-1]
    whole = np.ascontiguousarray(turned)
    return np.asarray(cv2.resize(whole, (_SIDE, _SIDE), interpolation=cv2.INTER_CUBIC), np.float32)


def _combine(strokes: Field, patches: Field) -> Field:
    """The strokes of one image over the patches of another."""
    fine = strokes - cv2.GaussianBlur(strokes, (0, 0), _BROAD)
    return np.asarray(cv2.GaussianBlur(patches, (0, 0), _BROAD / 2) + fine, np.float32)


def _recolour(draw: Draw, look: Field) -> Field:
    """Permute the channels, sometimes invert them, and make each brighter or darker."""
    order = np.argsort(draw.uniforms("order", 3))
    share = np.clip(look[..., order] / 255, 0, 1)
    if draw.uniform("negative") < 0.15:
        share = 1 - share
    return np.asarray(255 * share ** np.exp(draw.uniforms("gamma", 3) - 0.5), np.float32)
