"""Python code as a model: `package.module:attribute`, `path/to/script.py:function`, or a function in memory.

A function that takes images is a model; a class, or a function without positional parameters, makes one.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from stormproof.core.errors import InvalidOption, ModelError, StormproofError, message_of
from stormproof.core.files import locate
from stormproof.core.identity import blake2b
from stormproof.core.loading import load_attribute
from stormproof.core.sample import Image, Prediction
from stormproof.core.spec import OBJECT, Spec, keyword_options, local_object, takes_any_option
from stormproof.models.model import Model, Precomputed, fingerprint
from stormproof.models.naming import NAMING, take_naming
from stormproof.models.predictions import read_prediction, read_predictions
from stormproof.models.sources import is_installed, source_files
from stormproof.models.torch_detector import TorchDetector, returns_predictions

_DEPTH = 4  # levels of called functions and nested containers that the identity of a function covers


@dataclass(frozen=True, eq=False)
class FunctionModel:
    """A function from images to predictions in any form that `read_predictions` accepts."""

    function: Callable[[Sequence[Image]], Any] | Callable[[Image], Any]
    name: str
    classes: tuple[str, ...]
    semantic_classes: tuple[str, ...]
    fingerprint: str
    takes_tensors: bool = False  # whether images may be tensors on a device
    takes: list[str] = field(default_factory=list)  # what the first call showed: "images", or "one image"

    def __call__(self, images: Sequence[Image]) -> Sequence[Prediction]:
        if "one image" in self.takes:
            return [self._predict_one(image) for image in images]
        if self.takes or self.takes_tensors:
            return self._predict_all(images)
        try:
            found = self._predict_all([image.copy() for image in images])  # it may write into them and fail
        except Exception:
            if not (len(images) and self._answers_one(images[0].copy())):
                raise
            self.takes.append("one image")
            with suppress(UserWarning):  # where the model's code made warnings errors
                warnings.warn(
                    f"{self.name} takes one image, not a list of images, so it is called once for each. Let "
                    "it take a list and return a list to predict in batches.",
                    stacklevel=2,
                )
            return self(images)
        self.takes[:] = ["images"]
        return found

    def with_classes(self, names: tuple[str, ...]) -> FunctionModel:
        """The same function with names for its labels, which may then be these names."""
        return replace(self, classes=names, semantic_classes=self.semantic_classes or names)

    def _predict_all(self, images: Sequence[Image]) -> Sequence[Prediction]:
        sizes = [(image.shape[0], image.shape[1]) for image in images]
        return read_predictions(self.function(list(images)), sizes, self.name, self.classes)  # type: ignore[arg-type]

    def _predict_one(self, image: Image) -> Prediction:
        size = (image.shape[0], image.shape[1])
        return read_prediction(self.function(image), size, self.name, self.classes)  # type: ignore[arg-type]

    def _answers_one(self, image: Image) -> bool:
        """Whether the function takes one image, that is, returns a prediction that fits it.

        A function whose first parameter is in the plural takes several.
        """
        first = next(iter(_parameters(self.function) or ()), None)
        if first is not None and first.name.endswith(("s", "batch")):
            return False
        try:
            found = self._predict_one(image)
        except Exception:  # the error of the call with a list is reported instead
            return False
        return found.semantic is None or found.semantic.shape == image.shape[:2]


def _parameters(function: Any) -> list[inspect.Parameter] | None:
    """The parameters of a callable; None of one that is not written in Python."""
    try:
        return [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return None


def function_model(
    function: Callable[[Sequence[Image]], Any], *, name: str | None = None, classes: Sequence[str] = ()
) -> FunctionModel:
    """Wrap a function; `name`, `classes`, `semantic_classes`, `fingerprint` and `takes_tensors` may be its
    attributes.

    Without a fingerprint of its own, the function is identified by its code and the numbers, strings and
    arrays the code refers to. Weights inside other objects are not seen: state a fingerprint if they change.
    """
    if is_torch_module(function):
        function = TorchDetector(function)
    if not callable(function):
        raise InvalidOption(f"{type(function).__name__} is not a model: it is not callable.")
    own = getattr(function, "name", None) or getattr(function, "__name__", type(function).__name__)
    names = tuple(classes) or tuple(getattr(function, "classes", ()))
    maps = tuple(getattr(function, "semantic_classes", ())) or names
    stated = getattr(function, "fingerprint", None)
    settings = {"own": stated} if stated is not None else {"code": code_identity(function)}
    identity = fingerprint((), {**settings, "classes": [names, maps]})
    called = name or ("function" if own == "<lambda>" else str(own))
    takes_tensors = getattr(function, "takes_tensors", None) is True
    return FunctionModel(function, called, names, maps, identity, takes_tensors=takes_tensors)


def code_identity(value: Any, depth: int = _DEPTH) -> Any:
    """A function's code and the constants, defaults and globals it refers to, as plain data.

    Nothing is run. State inside other objects is not seen.
    """
    if isinstance(value, np.float64 | np.str_ | np.bytes_):
        value = value.item()  # how NumPy writes its numbers follows from print options
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic):
        return [str(value.dtype), value.shape, blake2b(value.tobytes(), digest_size=16).hexdigest()]
    if depth == 0:
        return type(value).__qualname__
    if isinstance(value, list | tuple | set | frozenset):
        entries = [code_identity(entry, depth - 1) for entry in value]
        return sorted(entries, key=repr) if isinstance(value, set | frozenset) else entries
    if isinstance(value, Mapping):
        return [[repr(key), code_identity(entry, depth - 1)] for key, entry in value.items()]
    if isinstance(value, partial):
        return [code_identity(part, depth - 1) for part in (value.func, value.args, value.keywords)]
    if isinstance(value, MethodType):
        return [code_identity(value.__func__, depth - 1), type(value.__self__).__qualname__]
    if isinstance(value, FunctionType):
        return _function_identity(value, depth)
    if isinstance(value, ModuleType):
        file = Path(getattr(value, "__file__", None) or "")
        is_own = file.is_file() and not is_installed(file)
        return ["module", fingerprint(source_files(file, value.__name__), {}) if is_own else None]
    if isinstance(value, CodeType):
        constants = [code_identity(constant, depth) for constant in value.co_consts]
        return [value.co_code.hex(), constants, value.co_names]
    call = vars(type(value)).get("__call__")
    own = code_identity(call, depth - 1) if isinstance(call, FunctionType) else None
    return [type(value).__qualname__, own]


def _function_identity(function: FunctionType, depth: int) -> Any:
    cells = [_content(cell) for cell in function.__closure__ or ()]
    names = [name for name in function.__code__.co_names if name in function.__globals__]
    used = {name: function.__globals__[name] for name in names}
    return [
        code_identity(function.__code__, depth),
        [code_identity(part, depth - 1) for part in (function.__defaults__, function.__kwdefaults__, cells)],
        code_identity(used, depth - 1),
    ]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def open_object(main: str) -> Model | Precomputed:
    """A model that a Python program passed to `stormproof.run`, while that run lasts."""
    found: Model | Precomputed | None = local_object(main)
    if found is None:
        fix = "put the function in a file and name it file.py:function"
        raise ModelError(f"The model {OBJECT}:{main} exists only in the process that made it; {fix}.")
    return found


def is_python(kind: str) -> bool:
    """Whether the part before the colon names a script or an importable module."""
    if kind.endswith(".py") or "." in kind:
        return True
    if str(Path.cwd()) not in sys.path and "" not in sys.path:
        sys.path.append(str(Path.cwd()))  # last, so that it never hides an installed module
    try:
        return importlib.util.find_spec(kind) is not None
    except (ImportError, ValueError):
        return False


def open_python(spec: Spec) -> Model | Precomputed:
    """The model that a Python attribute is or makes; options become its keyword-only arguments."""
    module, found = _load(spec)
    spec, _, naming = take_naming(spec, _declared_options(found))
    return naming.apply(_open(spec, module, found))


def _declared_options(found: Any) -> dict[str, Any]:
    """The options that a function or class takes itself."""
    try:
        return dict.fromkeys(NAMING) if takes_any_option(found) else keyword_options(found)
    except (TypeError, ValueError):  # not callable, or not written in Python
        return {}


def _open(spec: Spec, module: Any, found: Any) -> Model | Precomputed:
    if isinstance(found, type) or _makes_model(found):
        found = _make(found, spec)
    elif spec.options:
        found = partial(found, **_options(found, spec))
    if is_torch_module(found):
        if returns_predictions(found):
            return function_model(TorchDetector(found), name=spec.main)
        at = f"torch:{spec.kind}:{spec.main}"
        what = "is a torch module that does not return dictionaries of boxes, scores and labels"
        raise InvalidOption(f"{spec} {what}; open it as {at}, with a card.")
    if isinstance(found, Model | Precomputed):
        return found
    if not callable(found):
        raise InvalidOption(f"{spec} is {type(found).__name__}, not a model: it is not callable.")
    return _script_model(found, spec, module)


def _script_model(function: Callable[[Sequence[Image]], Any], spec: Spec, module: Any) -> FunctionModel:
    """A function of a module, described by its attributes.

    They are `name`, `classes` (default: the module's), `semantic_classes` (default: the classes),
    `fingerprint` and `takes_tensors`. Without a fingerprint, the source file, the modules beside it that it
    imports, and the options identify the model: weights that live elsewhere and may change need one.
    """
    stated = function.func if isinstance(function, partial) else function
    name, own = getattr(stated, "name", None), getattr(stated, "fingerprint", None)
    classes = _names(getattr(stated, "classes", None) or getattr(module, "classes", None))
    maps = _names(getattr(stated, "semantic_classes", classes))
    file = inspect.getsourcefile(module)
    inside = "" if spec.kind.endswith(".py") else spec.kind
    files = () if own is not None or file is None else source_files(Path(file), inside)
    identity = fingerprint(files, {"own": own, "at": spec.main, "options": dict(spec.options)})
    called = name if isinstance(name, str) else spec.main
    takes_tensors = getattr(stated, "takes_tensors", None) is True
    return FunctionModel(function, called, classes, maps, identity, takes_tensors=takes_tensors)


def _names(found: object) -> tuple[str, ...]:
    return tuple(map(str, found)) if isinstance(found, list | tuple) else ()


def is_torch_module(found: object) -> bool:
    return hasattr(found, "state_dict") and hasattr(found, "forward")


def _load(spec: Spec) -> tuple[Any, Any]:
    """The module, and the object in it."""
    if spec.kind.endswith(".py"):
        module = _run_script(locate(spec.kind, error=ModelError))
        found: Any = module
        for part in spec.main.split("."):
            if not hasattr(found, part):
                names = ", ".join(name for name in vars(module) if not name.startswith("_"))
                raise InvalidOption(f"{spec.kind} has no {spec.main!r}; it has {names}.")
            found = getattr(found, part)
        return module, found
    found = load_attribute(f"{spec.kind}:{spec.main}")
    return sys.modules[spec.kind], found


def _run_script(path: Path) -> Any:
    """Run a script file as a module; it can import the files beside it, as when Python runs it.

    What an earlier script imported from beside it is forgotten: another folder may have a file of that name,
    and the same file may have changed.
    """
    _forget_script()
    name = f"stormproof_script_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    folder = str(path.resolve().parent)
    _last_script[:] = [(path, "" if folder in sys.path else folder, frozenset(sys.modules))]
    if folder not in sys.path:
        sys.path.append(folder)
    sys.modules[name] = module  # dataclasses and pickling look their module up by name
    try:
        found.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit too, which a script may call when it is not the main one
        sys.modules.pop(name, None)
        raise InvalidOption(f"{path} cannot be run: {type(error).__name__}: {message_of(error)}") from error
    return module


# The script that was run last, the folder that was added to sys.path for it, and the modules loaded before.
_last_script: list[tuple[Path, str, frozenset[str]]] = []


def _forget_script() -> None:
    """Undo what importing the files beside the last script left in this process."""
    for path, folder, loaded_before in _last_script:
        beside = {str(file) for file in source_files(path)} if path.is_file() else ()
        for name, module in list(sys.modules.items()):
            if name not in loaded_before and getattr(module, "__file__", None) in beside:
                del sys.modules[name]
        if folder in sys.path:
            sys.path.remove(folder)
    _last_script.clear()
    importlib.invalidate_caches()


def _make(make: Any, spec: Spec) -> Any:
    """What a class or factory makes of the options."""
    options = _options(make, spec)
    try:
        return make(**options)
    except (StormproofError, KeyboardInterrupt):
        raise
    except BaseException as error:
        what = f"{type(error).__name__}: {message_of(error)}"
        raise InvalidOption(f"{spec} cannot make a model: {what}") from error


def _makes_model(found: Any) -> bool:
    """Whether a function has no positional parameter, so that it makes a model instead of taking images."""
    parameters = _parameters(found) if inspect.isroutine(found) else None
    return parameters is not None and all(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in parameters)


def _options(found: Any, spec: Spec) -> dict[str, Any]:
    (options,) = spec.arguments(found)
    try:
        inspect.signature(found).bind_partial(**options)
    except TypeError as error:
        raise InvalidOption(f"Cannot call {spec.main}: {error}; options must be keyword-only.") from None
    return options
