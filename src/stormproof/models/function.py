"""A function as a model, as it is: made in a notebook or a script, for this process alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from stormproof.core.errors import InvalidOption, ModelError
from stormproof.core.sample import Image, Prediction
from stormproof.core.spec import OBJECT, local_object
from stormproof.models.answers import read_answers
from stormproof.models.fingerprint import fingerprint
from stormproof.models.model import Model, Precomputed

_DEEP = 4  # functions that functions call, and lists in lists, looked into for a fingerprint


def open_object(main: str) -> Model | Precomputed:
    """A model that a Python program gave to `stormproof.run`, while that runs."""
    found: Model | Precomputed | None = local_object(main)
    if found is None:
        fix = "put the function in a file and name it file.py:function"
        raise ModelError(f"The model {OBJECT}:{main} was made in Python, in another process; {fix}.")
    return found


@dataclass(frozen=True, eq=False)
class FunctionModel:
    """A function from images to answers, of any form that `read_answers` takes."""

    function: Callable[[Sequence[Image]], Any]
    name: str
    classes: tuple[str, ...]
    semantic_classes: tuple[str, ...]
    fingerprint: str
    takes_tensors: bool = False  # whether images may be tensors on a device

    def __call__(self, images: Sequence[Image]) -> list[Prediction]:
        sizes = [(image.shape[0], image.shape[1]) for image in images]
        return read_answers(self.function(images), sizes, self.name)


def function_model(
    function: Callable[[Sequence[Image]], Any], *, name: str | None = None, classes: Sequence[str] = ()
) -> FunctionModel:
    """A model of a function; `name`, `classes`, `semantic_classes` and `fingerprint` may be its attributes.

    Without a fingerprint of its own that of its code is used, with the numbers, strings and arrays the code
    refers to. Weights that lie in other objects are not seen: where they may change, state a fingerprint.
    """
    if hasattr(function, "state_dict") and hasattr(function, "forward"):
        fix = "give a function that feeds it and returns boxes, scores and labels"
        raise InvalidOption(f"{type(function).__name__} is a torch module; {fix}.")
    if not callable(function):
        raise InvalidOption(f"{type(function).__name__} is no model: it cannot be called with images.")
    own = getattr(function, "name", None) or getattr(function, "__name__", type(function).__name__)
    known = tuple(classes) or tuple(getattr(function, "classes", ()))
    maps = tuple(getattr(function, "semantic_classes", ())) or known
    stated = getattr(function, "fingerprint", None)
    settings = {"own": stated} if stated is not None else {"code": _identity(function, _DEEP)}
    called = name or ("function" if own == "<lambda>" else str(own))
    return FunctionModel(
        function, called, known, maps, fingerprint((), {**settings, "classes": [known, maps]})
    )


def _identity(value: Any, deep: int) -> Any:
    """What can be told of a value without running it, as plain data."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.shape, hashlib.blake2b(value.tobytes(), digest_size=16).hexdigest()]
    if deep == 0:
        return type(value).__qualname__
    if isinstance(value, list | tuple | set | frozenset):
        entries = [_identity(entry, deep - 1) for entry in value]
        return sorted(entries, key=repr) if isinstance(value, set | frozenset) else entries
    if isinstance(value, Mapping):
        return [[repr(key), _identity(entry, deep - 1)] for key, entry in value.items()]
    if isinstance(value, partial):
        return [_identity(part, deep - 1) for part in (value.func, value.args, value.keywords)]
    if isinstance(value, MethodType):
        return [_identity(value.__func__, deep - 1), type(value.__self__).__qualname__]
    if isinstance(value, FunctionType):
        return _of_function(value, deep)
    if isinstance(value, CodeType):
        return [
            value.co_code.hex(),
            [_identity(constant, deep) for constant in value.co_consts],
            value.co_names,
        ]
    call = vars(type(value)).get("__call__")
    return [type(value).__qualname__, _identity(call, deep - 1) if isinstance(call, FunctionType) else None]


def _of_function(function: FunctionType, deep: int) -> Any:
    cells = [_content(cell) for cell in function.__closure__ or ()]
    names = [name for name in function.__code__.co_names if name in function.__globals__]
    used = {name: function.__globals__[name] for name in names}
    return [
        _identity(function.__code__, deep),
        [_identity(part, deep - 1) for part in (function.__defaults__, function.__kwdefaults__, cells)],
        _identity(used, deep - 1),
    ]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
