"""Models: one file per framework, opened by a spec string.

A framework is one file here whose opener is marked `@ADAPTERS.declare("kind")`; docs/adding/adapter.md
adds one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.spec import OBJECT, Spec, default_main, keyword_options
from stormproof.models.files import check_format, full_spec
from stormproof.models.model import ADAPTERS, Model, Precomputed

__all__ = ["ADAPTERS", "Model", "Precomputed", "full_spec", "load_model"]


def load_model(text: str) -> Model | Precomputed:
    """Open the model that a spec string names.

    `ADAPTERS` holds the kinds; `package.module:attribute` and `path/to/script.py:function` name Python code.
    """
    if text.startswith(f"{OBJECT}:"):
        from stormproof.models.python import open_object

        return open_object(text.removeprefix(f"{OBJECT}:"))
    spec = Spec.parse(_with_default(full_spec(text)))
    check_format(spec)
    if spec.kind in ADAPTERS:
        from stormproof.models.naming import take_naming

        opener = ADAPTERS[spec.kind]
        spec, given, naming = take_naming(spec, keyword_options(opener))
        (options,) = spec.arguments(opener)
        _check_ranges(options)
        return naming.apply(opener(spec.main, **options, **given))
    from stormproof.models.python import is_python, open_python

    if is_python(spec.kind):
        return open_python(spec)
    hint = f"Kinds: {', '.join(ADAPTERS)}; or package.module:attribute, or script.py:function."
    raise UnknownName("kind of model", spec.kind, ADAPTERS, hint)


def _check_ranges(options: Mapping[str, object]) -> None:
    """Refuse numbers with which torch would fail (threads=0), no image be run (batch=-1), or all predictions
    be left out (score=50)."""
    for name, value in options.items():
        if name in ("threads", "batch") and isinstance(value, int) and value < 1:
            raise InvalidOption(f"{name}={value}: at least 1 is needed.")
        if name in ("score", "iou") and isinstance(value, float) and not 0 <= value <= 1:
            raise InvalidOption(f"{name}={value:g}: it must lie in 0 to 1.")


def _with_default(text: str) -> str:
    """The spec with the kind's default main part: `hog` and `hog:,margin=0` become `hog:people…`."""
    match = re.fullmatch(r"\s*(\w+)(?::(?=\s*(?:,|$)))?\s*(,.*)?", text)
    default = default_main(ADAPTERS[match[1]]) if match and match[1] in ADAPTERS else ""
    return f"{match[1]}:{default}{match[2] or ''}" if match and default else text
