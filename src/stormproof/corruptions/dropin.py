"""The drop-in for imagecorruptions: same names, same signatures, one changed import line, or none."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidCondition, MissingContext, UnknownName
from stormproof.core.randomness import digest
from stormproof.core.sample import Image, as_rgb, check_image
from stormproof.corruptions import corrupt_image, find
from stormproof.corruptions.chain import is_random
from stormproof.corruptions.grammar import read_condition
from stormproof.corruptions.suites import BENCHMARK_15, HOLDOUT, MICHAELIS

_SUBSETS = {"common": BENCHMARK_15, "validation": HOLDOUT, "all": BENCHMARK_15 + HOLDOUT, **MICHAELIS}


def get_corruption_names(subset: str = "common") -> list[str]:
    """The names in a subset: common, validation, all, noise, blur, weather, digital."""
    try:
        return list(_SUBSETS[subset])
    except KeyError:
        raise UnknownName("subset", subset, _SUBSETS, f"Subsets: {', '.join(_SUBSETS)}.") from None


def corrupt(
    image: Image,
    severity: int | str | Condition = 1,
    corruption_name: str | None = None,
    corruption_number: int = -1,
    *,
    seed: int | None = 0,
    image_id: str | None = None,
) -> Image:
    """A corrupted copy of a uint8 image; like the reference, always H×W×3.

    Call it as in imagecorruptions, `corrupt(image, 3, "fog")`, or with any of Stormproof's conditions,
    `corrupt(image, "fog@3")`.

    The same call gives the same pixels. Without `image_id` a hash of the image's content replaces it, so two
    images get different noise. `seed=None` takes a new seed from NumPy's global generator and so behaves like
    the reference: new noise at every call, reproducible by `np.random.seed`.

    >>> corrupt(np.zeros((32, 32), np.uint8), severity=3, corruption_name="fog").shape
    (32, 32, 3)
    """
    check_image(image)
    if isinstance(severity, str | Condition) and corruption_name is None and corruption_number == -1:
        condition = read_condition(severity)
    else:
        condition = Condition.of(_name(corruption_name, corruption_number), _severity(severity))
    pixels = as_rgb(image)
    if image_id is None:
        image_id = digest(pixels) if is_random(condition) else ""
    if seed is None:
        seed = int(np.random.randint(2**31))
    return corrupt_image(pixels, condition, seed=seed, image_id=image_id)


def _severity(severity: object) -> int:
    try:
        if isinstance(severity, bool):
            raise TypeError
        return operator.index(severity)  # type: ignore[arg-type]  # any integer type, NumPy's too
    except TypeError:
        raise InvalidCondition(f"Severity {severity!r}: it must be an integer from 1 to 5.") from None


def _name(name: str | None, number: int) -> str:
    if name is not None:
        if not isinstance(name, str):
            raise InvalidCondition(
                f"corruption_name={name!r}: it must be a name such as 'fog'; a number is given as "
                "corruption_number=9 (0 to 18)."
            )
        needs = find(name).needs
        if name in _SUBSETS["all"]:
            return name
        if needs:
            raise MissingContext(
                f"{name} needs {' and '.join(needs)}, which an image alone does not have; corrupt a dataset "
                f"that has it: stormproof corrupt images:FOLDER,depth=FOLDER --conditions {name}@3 --out DIR."
            )
        hint = f"It is one of Stormproof's: write corrupt(image, '{name}@3')."
        raise UnknownName("corruption of imagecorruptions", name, _SUBSETS["all"], hint)
    if number == -1:
        raise InvalidCondition("Give corruption_name='fog' or corruption_number=9 (0 to 18).")
    if not 0 <= number < len(_SUBSETS["all"]):
        raise InvalidCondition(
            f"corruption_number={number}: it must be from 0 to {len(_SUBSETS['all']) - 1}."
        )
    return _SUBSETS["all"][number]


def init_as_imagecorruptions() -> None:
    """Make every later `import imagecorruptions` import this drop-in: in MMDetection, imgaug, your own code.

    Call it before anything else imports that package. `imagecorruptions.corrupt` gives the same pixels for
    the same image; the functions of `imagecorruptions.corruptions`, which imgaug calls, take their seed from
    NumPy's global generator, as the originals do.
    """
    name = "imagecorruptions"
    present = sys.modules.get(name)  # after an earlier call, or a stand-in, which may lack a spec
    installed = find_spec(name) if present is None else getattr(present, "__spec__", None)
    places = (installed.submodule_search_locations or []) if installed else []  # for its frost photographs
    functions = {each: _function(each) for each in _SUBSETS["all"]}
    package = _module(name, {
        "corrupt": corrupt,
        "get_corruption_names": get_corruption_names,
        "corruption_tuple": tuple(functions.values()),
        "corruption_dict": functions,
        "corruptions": _module(f"{name}.corruptions", functions),
        "__path__": list(places),
    })  # fmt: skip
    assert package.__spec__ is not None
    package.__spec__.submodule_search_locations = list(places)


def _module(name: str, content: dict[str, Any]) -> ModuleType:
    module = sys.modules[name] = ModuleType(name, "Stormproof's drop-in for imagecorruptions.")
    module.__spec__ = ModuleSpec(name, None)
    module.__dict__.update(content)
    return module


def _function(name: str) -> Callable[[Any, int], Image]:
    """A corruption as a function of an image (an array or a Pillow image) and a severity."""

    def corrupted(x: Any, severity: int = 1) -> Image:
        return corrupt(np.asarray(x), severity, name, seed=None)

    corrupted.__name__ = name
    return corrupted
