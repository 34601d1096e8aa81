"""The shipped weights on photographs and paintings they were not trained on, where these are at hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from stormproof.style.networks import open_network

# Wanted: 20 dB and at most 0.35 of the distance. The weights were trained too briefly (training/style/
# README.md); these bars hold what they reach, so that it does not get worse unseen.
PSNR, LEFT = 16.5, 0.7


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
    photographs = sorted((shared / "data/coco/val2017").glob("*.jpg"))[5::60]
    paintings = [
        shared / "data/paintings" / name
        for name in ("munch_scream_1893.jpg", "van_gogh_wheat_field.jpg", "picabia_udnie_1913.jpg")
    ]
    found = evaluate.evaluate(open_network(), photographs, paintings, evaluate.judges(shared))
    assert found["psnr"] >= PSNR
    assert found["distance_left"] <= LEFT
