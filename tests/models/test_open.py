"""Opening models costs nothing that was not asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from stormproof.datasets.spec import keyword_options, load_attribute
from stormproof.models import ADAPTERS

HEAVY = (
    "torch",
    "torchvision",
    "transformers",
    "onnxruntime",
    "onnx",
    "ultralytics",
    "ai_edge_litert",
    "requests",
)


def test_no_framework_is_imported_unasked() -> None:
    code = (
        "import sys, stormproof.models\n"
        "from stormproof.models import open_model, ADAPTERS\n"
        "from stormproof.datasets.spec import load_attribute\n"
        "openers = [load_attribute(place) for place in ADAPTERS.values()]\n"
        "open_model('hog')\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", ADAPTERS)
def test_every_adapter_declares_its_options(kind: str) -> None:
    opener = load_attribute(ADAPTERS[kind])
    assert all(option.annotation is not option.empty for option in keyword_options(opener).values())
    assert opener.__doc__ or opener.__module__
