"""Models: one file per framework, opened by a spec string."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from typing import cast

from stormproof.errors import UnknownName
from stormproof.models.model import Model, Precomputed
from stormproof.spec import Spec, call, load_attribute

# kind → where its opener lives; loaded only when named, so that no framework is imported unasked.
ADAPTERS: dict[str, str] = {
    "onnx": "stormproof.models.onnx:open_onnx",
    "torch": "stormproof.models.torch:open_torch",
    "torchvision": "stormproof.models.torchvision:open_torchvision",
    "hf": "stormproof.models.huggingface:open_huggingface",
    "ultralytics": "stormproof.models.ultralytics:open_ultralytics",
    "mmdet": "stormproof.models.openmmlab:open_mmdet",
    "mmseg": "stormproof.models.openmmlab:open_mmseg",
    "detectron2": "stormproof.models.detectron2:open_detectron2",
    "tflite": "stormproof.models.litert:open_tflite",
    "hog": "stormproof.models.hog:open_hog",
    "http": "stormproof.models.endpoint:open_http",
    "https": "stormproof.models.endpoint:open_https",
    "results": "stormproof.models.results:open_results",
}
# Kinds that need no file to be named after the colon.
_DEFAULTS = {"hog": "people"}


def open_model(text: str) -> Model | Precomputed:
    """Open the model that a spec string names.

    Kinds are the built-in adapters, then those other packages offer in the entry point group
    `stormproof.models`; `package.module:attribute` and `path/to/script.py:function` name Python code.
    """
    spec = Spec.parse(_with_default(text))
    plugins = {point.name: point for point in entry_points(group="stormproof.models")}
    if spec.kind in ADAPTERS:
        return cast(Model | Precomputed, call(load_attribute(ADAPTERS[spec.kind]), spec))
    if spec.kind in plugins:
        return cast(Model | Precomputed, call(plugins[spec.kind].load(), spec))
    from stormproof.models.python import is_python, open_python

    if is_python(spec.kind):
        return open_python(spec)
    kinds = [*ADAPTERS, *plugins]
    hint = f"Kinds: {', '.join(kinds)}; or package.module:attribute, or script.py:function."
    raise UnknownName("kind of model", spec.kind, kinds, hint)


def _with_default(text: str) -> str:
    """`hog` and `hog:,threshold=0` as `hog:people…`."""
    match = re.fullmatch(r"\s*(\w+)(?::(?=\s*(?:,|$)))?\s*(,.*)?", text)
    if match and match[1] in _DEFAULTS:
        return f"{match[1]}:{_DEFAULTS[match[1]]}{match[2] or ''}"
    return text
