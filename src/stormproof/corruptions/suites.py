"""Suites: the lists of conditions the papers ran."""

from __future__ import annotations

from stormproof.condition import Condition, Suite, grid
from stormproof.errors import UnknownName

NOISE = ("gaussian_noise", "shot_noise", "impulse_noise")
BLUR = ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur")
WEATHER = ("snow", "frost", "fog", "brightness")
DIGITAL = ("contrast", "elastic_transform", "pixelate", "jpeg_compression")
IMAGENET_C = NOISE + BLUR + WEATHER + DIGITAL
HOLDOUT = ("speckle_noise", "gaussian_blur", "spatter", "saturate")


def _suite(name: str, doc: str, corruptions: tuple[str, ...], cite: str = "hendrycks2019") -> Suite:
    return Suite(name, doc, grid(corruptions), cite)


SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        _suite("imagenet-c", "The 15 common corruptions that mPC averages over", IMAGENET_C, "michaelis2019"),
        _suite("holdout", "The 4 corruptions kept for validation", HOLDOUT),
        _suite("noise", "The noise group of imagenet-c", NOISE),
        _suite("blur", "The blur group of imagenet-c", BLUR),
        _suite("weather", "The weather group of imagenet-c", WEATHER),
        _suite("digital", "The digital group of imagenet-c", DIGITAL),
    )
}


def find_suite(name: str) -> Suite:
    """The suite of that name."""
    try:
        return SUITES[name]
    except KeyError:
        raise UnknownName("suite", name, SUITES, "List them with 'stormproof list suites'.") from None


def conditions_of(text: str) -> tuple[Condition, ...]:
    """The conditions a text names: a suite, or a single condition."""
    return SUITES[text].conditions if text in SUITES else (Condition.parse(text),)
