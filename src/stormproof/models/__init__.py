"""Models: one file per framework, opened by a spec string.

A framework is one file here with an opener marked `@opens("kind")`; docs/adding/adapter.md adds one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import cast

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.spec import OBJECT, Opener, Spec, declared, with_plugins
from stormproof.models.model import Model, Precomputed

ADAPTERS = declared(__name__, Path(__file__).parent)


def kinds() -> dict[str, Opener]:
    """The kinds of models: the built-in adapters, then those that other packages register in the entry point
    group `stormproof.models`."""
    return with_plugins(ADAPTERS, "stormproof.models")


def open_model(text: str) -> Model | Precomputed:
    """Open the model that a spec string names.

    `kinds` lists the kinds; `package.module:attribute` and `path/to/script.py:function` name Python code.
    """
    if text.startswith(f"{OBJECT}:"):
        from stormproof.models.python import open_object

        return open_object(text.removeprefix(f"{OBJECT}:"))
    known = kinds()
    refuse_bare_file(text)
    spec = Spec.parse(_with_default(text, known))
    if spec.kind in known:
        opener = known[spec.kind].load()
        return cast(Model | Precomputed, opener(spec.main, **spec.arguments(opener)[0]))
    from stormproof.models.python import is_python, open_python

    if is_python(spec.kind):
        return open_python(spec)
    hint = f"Kinds: {', '.join(known)}; or package.module:attribute, or script.py:function."
    raise UnknownName("kind of model", spec.kind, known, hint)


# The spec of a file by its suffix.
_FILES = {
    ".onnx": "onnx:{0}", ".tflite": "tflite:{0}", ".pt": "torch:{0}",
    ".pth": "torch:{0},module=package.module:factory",
    ".safetensors": "torch:{0},module=package.module:factory", ".json": "results:{0}", ".py": "{0}:function",
}  # fmt: skip


def refuse_bare_file(text: str) -> None:
    """Refuse `x.onnx` or `yolo11n.pt`, which name a file but no kind; suggest the likely spec."""
    main, comma, rest = text.strip().partition(",")
    suffix = PurePath(main).suffix.lower()
    if suffix not in _FILES or ":" in main.removeprefix("C:"):
        return
    form = "ultralytics:{0},trust=true" if suffix == ".pt" and "yolo" in main.lower() else _FILES[suffix]
    raise InvalidOption(f"{text!r} names a file but not its kind; write {form.format(main)}{comma}{rest}")


def _with_default(text: str, known: Mapping[str, Opener]) -> str:
    """The spec with the kind's default main part: `hog` and `hog:,margin=0` become `hog:people…`."""
    match = re.fullmatch(r"\s*(\w+)(?::(?=\s*(?:,|$)))?\s*(,.*)?", text)
    default = known[match[1]].default if match and match[1] in known else ""
    return f"{match[1]}:{default}{match[2] or ''}" if match and default else text
