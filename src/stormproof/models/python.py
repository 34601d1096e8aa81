"""Python code as a model: `package.module:attribute` or `path/to/script.py:function`.

A function of images is a model as it is; a class, or a function that needs no arguments, makes one.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from stormproof.core.errors import InvalidOption, ModelError
from stormproof.core.files import locate
from stormproof.core.loading import load_attribute
from stormproof.core.sample import Image
from stormproof.core.spec import Spec, read_options
from stormproof.models.fingerprint import fingerprint
from stormproof.models.function import FunctionModel
from stormproof.models.model import Model, Precomputed


def is_python(kind: str) -> bool:
    """Whether the part before the colon names a script or a module that can be imported."""
    if kind.endswith(".py") or "." in kind:
        return True
    try:
        return _find_spec(kind) is not None
    except (ImportError, ValueError):
        return False


def open_python(spec: Spec) -> Model | Precomputed:
    """The model that Python code is or makes; options go to its keyword-only parameters."""
    module, found = _load(spec)
    if isinstance(found, type) or _makes_model(found):
        found = found(**_options(found, spec))
    elif spec.options:
        found = partial(found, **_options(found, spec))
    if hasattr(found, "state_dict") and hasattr(found, "forward"):
        at = f"torch:{spec.kind}:{spec.main}"
        raise InvalidOption(
            f"{spec} is a torch module; open it as {at}, with a card that says how to feed it."
        )
    if isinstance(found, Model | Precomputed):
        return found
    if not callable(found):
        raise InvalidOption(f"{spec} is {type(found).__name__}, which cannot be called with images.")
    return _described(found, spec, module)


def _described(function: Callable[[Sequence[Image]], Any], spec: Spec, module: Any) -> FunctionModel:
    """A function with whatever it says about itself in attributes, or those of the one that options go to.

    They are `name`, `classes` (else its module's), `semantic_classes` (else its classes), `fingerprint` and
    `takes_tensors`. Without a stated fingerprint, that of its source file and options is used: if the weights
    live elsewhere and may change, state one.
    """
    stated = function.func if isinstance(function, partial) else function
    name, own = getattr(stated, "name", None), getattr(stated, "fingerprint", None)
    classes = _names(getattr(stated, "classes", None) or getattr(module, "classes", None)) or ()
    maps = _names(getattr(stated, "semantic_classes", None))
    file = inspect.getsourcefile(module)
    files = () if own is not None or file is None else (Path(file),)
    return FunctionModel(
        function,
        name if isinstance(name, str) else spec.main,
        classes,
        classes if maps is None else maps,
        fingerprint(files, {"own": own, "at": spec.main, "options": dict(spec.options)}),
        takes_tensors=getattr(stated, "takes_tensors", None) is True,
    )


def _names(found: object) -> tuple[str, ...] | None:
    return tuple(map(str, found)) if isinstance(found, list | tuple) else None


def _load(spec: Spec) -> tuple[Any, Any]:
    """The module and the object in it."""
    if spec.kind.endswith(".py"):
        module = _script(locate(spec.kind, error=ModelError))
        found: Any = module
        for part in spec.main.split("."):
            if not hasattr(found, part):
                names = ", ".join(name for name in vars(module) if not name.startswith("_"))
                raise InvalidOption(f"{spec.kind} has no {spec.main!r}; it has {names}.")
            found = getattr(found, part)
        return module, found
    _find_spec(spec.kind.partition(".")[0])
    return importlib.import_module(spec.kind), load_attribute(f"{spec.kind}:{spec.main}")


def _script(path: Path) -> Any:
    """Run a script file as a module; files beside it can be imported, as when Python runs it."""
    name = f"stormproof_script_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    sys.modules[name] = module  # dataclasses and pickling look their module up by name
    try:
        found.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InvalidOption(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    return module


def _find_spec(module: str) -> Any:
    """Find a module, in the working directory too, though never in place of an installed one."""
    if str(Path.cwd()) not in sys.path and "" not in sys.path:
        sys.path.append(str(Path.cwd()))
    return importlib.util.find_spec(module)


def _makes_model(found: Any) -> bool:
    """Whether a function takes no images: then it is there to make the model."""
    if not inspect.isroutine(found):
        return False
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return False
    return not any(
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL) for p in parameters
    )


def _options(found: Any, spec: Spec) -> dict[str, Any]:
    options = read_options(found, spec)
    try:
        inspect.signature(found).bind_partial(**options)
    except TypeError as error:
        raise InvalidOption(f"Cannot call {spec.main}: {error}; options must be keyword-only.") from None
    return options
