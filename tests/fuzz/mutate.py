"""Seeded changes to correct input that keep most of its structure, so that they reach deep into a reader."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import PIL.Image
import yaml

# What breaks readers: wrong kinds, edges of number formats, names that lead out, codes, markup.
HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 0.5, -0.0, 2**31, 2**32 + 5, 2**63, -(2**63) - 1, 10**400, 1e9, 4e8, -1e9,
    1e308, float("nan"), float("inf"), -float("inf"), "", " ", "1", "NaN", "x" * 5000, "\x1b[2J\x1b]0;t\x07",
    "[/]", "[bold]", "../../etc/passwd", "/etc/passwd", "~nobody/x", "a\0b", "\ud800", "٣", "\u202edcba", [],
    {}, [[]], [{}], [None], {"": None}, [[[[[[[[1]]]]]]]], [0, 0, 0, 0], [1e9, 0, 0, 1e9, 1e9, 1e9],
    [-5, -5, 1e5, 0, 0, 1e5], {"size": [1, 1], "counts": [2**32, 1]}, {"size": [24, 32], "counts": "0" * 40},
    {"size": [24, 32], "counts": "~~~~"}, {"size": [2**20, 2**20], "counts": []},
)  # fmt: skip
_TOKENS = (
    "nan",
    "inf",
    "-1",
    "1e9",
    "1e400",
    "9" * 5000,
    "0x10",
    "",
    "\x1b[31m",
    "[/]",
    "\0",
    "٣",
    "../..",
    "0.5",
)
_ENTITY = '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]>'
_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
)


def mutate(name: str, content: bytes, dice: random.Random) -> bytes:
    """A file's bytes changed as its kind allows; now and then without regard to its kind."""
    if dice.random() < 0.1:
        return flip(content, dice)
    suffix = PurePosixPath(name).suffix.lower()
    if suffix == ".json":
        return json_bytes(tree(json.loads(content), dice))
    if suffix in (".yaml", ".yml"):
        return _yaml(content, dice)
    if suffix in (".txt", ".xml"):
        return _text(content.decode(), dice, xml=suffix == ".xml").encode("utf-8", "surrogatepass")
    if suffix in (".png", ".jpg", ".bmp", ".webp", ".tif", ".ppm", ".gif"):
        return other_image(dice) if dice.random() < 0.2 else flip(content, dice)
    return flip(content, dice)


def json_bytes(content: Any) -> bytes:
    return json.dumps(content).encode("utf-8", "surrogatepass")


def tree(content: Any, dice: random.Random) -> Any:
    """A JSON tree with one to three of its places changed."""
    found = copy.deepcopy(content)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        places = list(_places(found))
        if not places:
            return copy.deepcopy(dice.choice(HOSTILE))
        holder, key = dice.choice(places)
        _edit(holder, key, dice)
    return found


def _places(content: Any) -> list[tuple[Any, Any]]:
    keys = (
        list(content)
        if isinstance(content, dict)
        else range(len(content))
        if isinstance(content, list)
        else ()
    )
    return [place for key in keys for place in [(content, key), *_places(content[key])]]


def _edit(holder: Any, key: Any, dice: random.Random) -> None:
    what = dice.random()
    if what < 0.6:
        holder[key] = copy.deepcopy(dice.choice(HOSTILE))
    elif what < 0.75:
        del holder[key]
    elif what < 0.85 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    elif type(holder[key]) in (int, float) and abs(holder[key]) < 1e300:  # beyond, an int is no float
        holder[key] = holder[key] * dice.choice((-1, 0, 1e6, 1e9, 0.1, 2**40))
    elif isinstance(holder[key], str):
        holder[key] += dice.choice((*_TOKENS, "x"))
    else:
        holder[key] = [holder[key]]


def _yaml(content: bytes, dice: random.Random) -> bytes:
    what = dice.random()
    if what < 0.1:
        return (_BOMB + dice.choice(("", "names: *j\n", "model: *j\n", "input: *j\n"))).encode()
    if what < 0.6:
        changed = tree(yaml.safe_load(content), dice)
        try:
            return yaml.safe_dump(changed, allow_unicode=True).encode("utf-8", "surrogatepass")
        except yaml.YAMLError:
            return flip(content, dice)
    extra = dice.choice(("- x\n", "a: &a [*a]\n", "? [1, 2]\n: 3\n", "names: !!python/object:os.system x\n",
                         "val: 2024-99-99\n", f"names: {'9' * 6000}\n", "{" * 400, "[" * 3000,
                         "\t: x", "%YAML 9\n---\n"))  # fmt: skip
    return (content.decode() + extra).encode()


def _text(text: str, dice: random.Random, *, xml: bool) -> str:
    if xml and dice.random() < 0.05:
        return _ENTITY + text
    for _ in range(dice.choice((1, 1, 2, 3))):
        tokens = list(re.finditer(r"[-\w.]+", text))
        if not tokens:
            return text + dice.choice(_TOKENS)
        token = dice.choice(tokens)
        new = dice.choice((*_TOKENS, token[0] * 2, token[0] + " " + token[0], "<a>", "</b>"))
        text = text[: token.start()] + new + text[token.end() :]
    return text


def strewn(text: str, tokens: Sequence[str], times: int, dice: random.Random) -> str:
    """A string with tokens put in, or in place of a character."""
    letters = list(text)
    for _ in range(times):
        at = dice.randrange(len(letters) + 1)
        token = dice.choice(tokens)
        letters[at : at + dice.choice((0, 1))] = [token]
    return "".join(letters)


def flip(content: bytes, dice: random.Random) -> bytes:
    """Bytes changed, cut, doubled or dropped."""
    changed = bytearray(content)
    for _ in range(dice.choice((1, 2, 4, 8))):
        if not changed:
            return bytes(changed)
        at = dice.randrange(len(changed))
        what = dice.random()
        if what < 0.6:
            changed[at] = dice.choice(
                (0, 255, 127, changed[at] ^ (1 << dice.randrange(8)), dice.randrange(256))
            )
        elif what < 0.75:
            del changed[at:]
        elif what < 0.9:
            del changed[at : at + dice.randrange(1, 40)]
        else:
            changed[at:at] = changed[at : at + dice.randrange(1, 40)]
    return bytes(changed)


def other_image(dice: random.Random) -> bytes:
    """A correct image of another size, mode or format than is expected."""
    mode = dice.choice(("RGBA", "LA", "P", "1", "L", "I;16", "RGB", "CMYK", "F"))
    side = dice.choice(((1, 1), (32, 24), (24, 32), (3, 2000)))
    depth = {"RGBA": 4, "LA": 2, "RGB": 3, "CMYK": 4}.get(mode, 1)
    pixels = np.random.default_rng(dice.randrange(99)).integers(0, 255, (side[1], side[0], depth), np.uint8)
    plain = PIL.Image.frombytes("L", side, pixels[..., 0].tobytes())
    image = plain.convert("I" if mode == "I;16" else mode) if depth == 1 else None
    image = image or PIL.Image.frombytes(mode, side, pixels.tobytes())
    buffer = BytesIO()
    for kind in (dice.choice(("PNG", "TIFF", "GIF", "BMP", "WEBP", "JPEG", "AVIF", "BLP", "ICO")), "TIFF"):
        try:
            image.save(buffer, kind)
        except (OSError, ValueError, KeyError):  # a format that cannot hold this mode
            buffer = BytesIO()
            continue
        break
    return buffer.getvalue()
