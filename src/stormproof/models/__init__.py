"""Models: one file per framework, opened by a spec string.

A framework is one file here whose opener is marked `@ADAPTERS.declare("kind")`; docs/adding/adapter.md
adds one.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.spec import OBJECT, Spec, default_main, keyword_options
from stormproof.models.model import ADAPTERS, Model, Precomputed

__all__ = ["ADAPTERS", "Model", "Precomputed", "open_model", "refuse_bare_file"]


def open_model(text: str) -> Model | Precomputed:
    """Open the model that a spec string names.

    `ADAPTERS` holds the kinds; `package.module:attribute` and `path/to/script.py:function` name Python code.
    """
    if text.startswith(f"{OBJECT}:"):
        from stormproof.models.python import open_object

        return open_object(text.removeprefix(f"{OBJECT}:"))
    refuse_bare_file(text)
    spec = Spec.parse(_with_default(text))
    if spec.kind in ADAPTERS:
        from stormproof.models.naming import take_naming

        opener = ADAPTERS[spec.kind]
        spec, given, naming = take_naming(spec, keyword_options(opener))
        return naming.apply(opener(spec.main, **spec.arguments(opener)[0], **given))
    from stormproof.models.python import is_python, open_python

    if is_python(spec.kind):
        return open_python(spec)
    hint = f"Kinds: {', '.join(ADAPTERS)}; or package.module:attribute, or script.py:function."
    raise UnknownName("kind of model", spec.kind, ADAPTERS, hint)


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


def _with_default(text: str) -> str:
    """The spec with the kind's default main part: `hog` and `hog:,margin=0` become `hog:people…`."""
    match = re.fullmatch(r"\s*(\w+)(?::(?=\s*(?:,|$)))?\s*(,.*)?", text)
    default = default_main(ADAPTERS[match[1]]) if match and match[1] in ADAPTERS else ""
    return f"{match[1]}:{default}{match[2] or ''}" if match and default else text
