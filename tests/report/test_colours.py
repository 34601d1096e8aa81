"""Colours of series are distinct, to colour-blind readers too, and contrast with their background."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from stormproof.report.charts import THEMES

Vector = npt.NDArray[np.float64]
# What is seen of linear RGB: Machado, Oliveira & Fernandes 2009, Table of severity 1.0.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
LEAST = 20.0  # CIE76 difference; about 2 is just noticeable side by side
CONTRAST = 3.0  # of graphics, WCAG 2.1, 1.4.11


def palettes() -> dict[str, tuple[list[str], str]]:
    """Every list of colours with its paper; figures for papers are in the light ones."""
    return {name: (theme["range"], theme["paper"]) for name, theme in THEMES.items()}


def linear(colour: str) -> Vector:
    value = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(seen: Vector) -> Vector:
    xyz = XYZ @ np.clip(seen, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def luminance(colour: str) -> float:
    return float(XYZ[1] @ linear(colour))


def test_there_are_two_lists_of_seven() -> None:
    assert {name: len(colours) for name, (colours, _) in palettes().items()} == {"light": 7, "dark": 7}


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("name", ["light", "dark"])
def test_no_two_colours_look_alike(name: str, sight: str) -> None:
    colours, _ = palettes()[name]
    seen = {colour: lab(SIGHT[sight] @ linear(colour)) for colour in colours}
    apart = {(a, b): float(np.linalg.norm(seen[a] - seen[b])) for a, b in itertools.combinations(colours, 2)}
    assert min(apart.values()) >= LEAST, min(apart, key=lambda pair: apart[pair])


@pytest.mark.parametrize("name", ["light", "dark"])
def test_every_colour_stands_out_from_its_paper(name: str) -> None:
    colours, paper = palettes()[name]
    for colour in colours:
        low, high = sorted((luminance(colour), luminance(paper)))
        assert (high + 0.05) / (low + 0.05) >= CONTRAST, colour
