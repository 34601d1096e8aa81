"""The shipped weights on photographs and paintings they were not trained on, where these are at hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from stormproof.style.networks import open_network

PSNR, LEFT = 20.0, 0.35  # medians: dB at α = 0; share of the distance to the style left at α = 1


def evaluation() -> ModuleType:
    path = Path(__file__).parents[2] / "training/style/evaluate.py"
    spec = importlib.util.spec_from_file_location("style_evaluation", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_reconstruction_and_distance_to_the_style(shared: Path) -> None:
    pytest.importorskip("torch")
    evaluate = evaluation()
    photographs = sorted((shared / "data/coco/val2017").glob("*.jpg"))
    paintings = [
        shared / "data/paintings" / name
        for name in ("munch_scream_1893.jpg", "van_gogh_wheat_field.jpg", "picabia_udnie_1913.jpg")
    ]
    network = open_network()
    assert np.median(evaluate.reconstruction(network, photographs[::5])) >= PSNR
    left = evaluate.distances_left(network, photographs[::40], paintings, evaluate.judges(shared))
    assert np.median([value for values in left.values() for value in values]) <= LEFT
