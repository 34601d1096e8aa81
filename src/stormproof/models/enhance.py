"""Image enhancement before a model: does it recover what a corruption cost? (liu 2024, RQ4)

An enhanced model is another model: the enhancements are part of its name and fingerprint. An enhancement is
any function from an image to an image of the same size; other packages register theirs in the entry point
group `stormproof.enhancements`. Its keyword parameters that are numbers may be given: `nlm[h=20]`,
`clahe[clip=4,tiles=4]`. An enhancement that depends on weights has a `fingerprint` attribute.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import cv2
import numpy as np

from stormproof.core import extensions
from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.registry import Registry
from stormproof.core.sample import Image, Prediction, as_rgb
from stormproof.core.wrapper import Wrapper
from stormproof.models.model import Model, Precomputed, fingerprint

ENHANCEMENTS: Registry[Callable[..., Image]] = Registry(extensions.ENHANCEMENTS)
# Increase it when the defaults of an enhancement change, since its images then change.
_VERSION = 1


@ENHANCEMENTS.declare("clahe")
def clahe(image: Image, *, clip: float = 2.0, tiles: int = 8) -> Image:
    """Contrast-limited adaptive histogram equalisation of the luma; the chroma is kept.

    `clip` bounds the slope of a tile's histogram; the image has tiles×tiles of them.
    """
    luma = cv2.createCLAHE(clipLimit=clip, tileGridSize=(tiles, tiles))
    if image.ndim == 2 or image.shape[2] == 1:
        return np.asarray(luma.apply(image.reshape(image.shape[:2])), np.uint8).reshape(image.shape)
    planes = cv2.cvtColor(image, cv2.COLOR_RGB2YCrCb)
    planes[..., 0] = luma.apply(np.ascontiguousarray(planes[..., 0]))
    return np.asarray(cv2.cvtColor(planes, cv2.COLOR_YCrCb2RGB), np.uint8)


@ENHANCEMENTS.declare("nlm")
def nlm(image: Image, *, h: float = 3.0, template: int = 7, search: int = 21) -> Image:
    """Non-local means: each pixel becomes the mean of pixels with similar surroundings.

    `h` is the strength, about the standard deviation in grey levels of the noise that it removes; `template`
    and `search` are the sides in pixels of the surroundings and of the area searched. The defaults are
    OpenCV's, as in the paper; strong noise and bad pixels need h = 20 or so.
    """
    # OpenCV expects BGR for its conversion to CIELAB, where it separates luma from colour.
    reverse = np.ascontiguousarray(as_rgb(image)[..., ::-1])
    cleaned = cv2.fastNlMeansDenoisingColored(reverse, None, h, h, template, search)
    return np.ascontiguousarray(cleaned[..., ::-1])


@dataclass(frozen=True, eq=False)
class Enhanced(Wrapper):
    """A model that sees every image after some enhancements, first to last."""

    model: Model
    names: tuple[str, ...]
    functions: tuple[Callable[[Image], Image], ...]

    @property
    def _inner(self) -> Model:
        return self.model

    @property
    def name(self) -> str:
        return "+".join((self.model.name, *self.names))

    @property
    def fingerprint(self) -> str:
        own = {"model": self.model.fingerprint, "steps": self.names, "version": _VERSION}
        stated = [step.fingerprint for step in self.functions if hasattr(step, "fingerprint")]
        return fingerprint((), {**own, "stated": stated} if stated else own)

    def __call__(self, images: Sequence[Image]) -> Sequence[Prediction]:
        for step in self.functions:
            images = [step(image) for image in images]
        return self.model(images)


_CALL = re.compile(r"(?P<name>[\w-]+)(\[(?P<values>[^]]*)\])?")


def read_enhancement(text: str) -> tuple[str, Callable[[Image], Image]]:
    """An enhancement with its parameters, as in `nlm[h=20]`: its name as written plainly, and the function.

    >>> read_enhancement("nlm[h=20.0]")[0], read_enhancement("clahe")[0]
    ('nlm[h=20]', 'clahe')
    """
    match = _CALL.fullmatch(text.strip())
    if match is None:
        raise InvalidOption(f"--enhance {text!r}: write a name, or nlm[h=20] with its parameters.")
    function = ENHANCEMENTS.find(match["name"])
    given = [part.partition("=") for part in (match["values"] or "").split(",") if part.strip()]
    if not given:
        return match["name"], function
    try:
        known = {
            key: parameter.default
            for key, parameter in inspect.signature(function).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY and type(parameter.default) in (int, float)
        }
    except (TypeError, ValueError):
        known = {}
    values: dict[str, float] = {}
    for key, _, value in ((k.strip(), s, v.strip()) for k, s, v in given):
        if key not in known:
            listed = f"It has {', '.join(known)}." if known else "It has none."
            raise UnknownName(f"parameter of {match['name']}", key, known, listed)
        try:
            values[key] = type(known[key])(value)
        except ValueError:
            raise InvalidOption(f"--enhance {text}: {key} must be a number, not {value!r}.") from None
        if not values[key] > 0:
            raise InvalidOption(f"--enhance {text}: {key} must be above 0, not {value}.")
    said = ",".join(f"{key}={values[key]:g}" for key in sorted(values))
    return f"{match['name']}[{said}]", partial(function, **values)


def enhance_model(model: Model | Precomputed, names: Sequence[str]) -> Model | Precomputed:
    """`model` behind the named enhancements; the model itself if there are none."""
    if not names:
        return model
    steps = [read_enhancement(name) for name in names]
    if isinstance(model, Precomputed):
        raise InvalidOption(f"{model.name} holds precomputed predictions; there is no image to enhance.")
    return Enhanced(model, tuple(name for name, _ in steps), tuple(step for _, step in steps))
