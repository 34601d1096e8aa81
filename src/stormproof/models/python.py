"""Python code as a model: `package.module:attribute` or `path/to/script.py:function`.

A function of images is a model as it is; a class, or a function that needs no arguments, makes one.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from stormproof.errors import InvalidOption, ModelError
from stormproof.files import locate
from stormproof.models.answers import read_answers
from stormproof.models.fingerprint import fingerprint
from stormproof.models.model import Model, Precomputed
from stormproof.sample import Image, Prediction
from stormproof.spec import Spec, load_attribute, read_options


@dataclass(frozen=True, eq=False)
class PythonModel:
    """A function from images to answers, with whatever it says about itself in attributes.

    `name`, `classes`, `semantic_classes` (else its classes), `fingerprint` and `takes_tensors` are read from
    the function; `classes` may be defined in its module too. Without a stated fingerprint, that of its source
    file and options is used: if the weights live elsewhere and may change, state one.
    """

    function: Callable[[Sequence[Image]], Any]
    spec: Spec
    source: Path | None
    module: Any

    @property
    def name(self) -> str:
        own = self._stated("name")
        return own if isinstance(own, str) else self.spec.main

    @property
    def classes(self) -> tuple[str, ...]:
        found = self._stated("classes") or getattr(self.module, "classes", None)
        return tuple(map(str, found)) if isinstance(found, list | tuple) else ()

    @property
    def semantic_classes(self) -> tuple[str, ...]:
        found = self._stated("semantic_classes")
        return tuple(map(str, found)) if isinstance(found, list | tuple) else self.classes

    @cached_property
    def fingerprint(self) -> str:
        own = self._stated("fingerprint")
        files = () if own is not None or self.source is None else (self.source,)
        return fingerprint(files, {"own": own, "at": self.spec.main, "options": dict(self.spec.options)})

    @property
    def takes_tensors(self) -> bool:
        """Whether it states that images may be tensors on a device."""
        return self._stated("takes_tensors") is True

    def _stated(self, attribute: str) -> Any:
        """An attribute of the function, or of the one that options were bound to."""
        function = self.function.func if isinstance(self.function, partial) else self.function
        return getattr(function, attribute, None)

    def __call__(self, images: Sequence[Image]) -> list[Prediction]:
        sizes = [(image.shape[0], image.shape[1]) for image in images]
        return read_answers(self.function(images), sizes, self.name)


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
    file = inspect.getsourcefile(module)
    return PythonModel(found, spec, Path(file) if file else None, module)


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
