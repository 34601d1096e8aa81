"""Opening models costs nothing that was not asked for."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from stormproof.core.errors import MissingExtra
from stormproof.core.spec import keyword_options
from stormproof.models import ADAPTERS, load_model

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
        "from stormproof.models import load_model, ADAPTERS\n"
        "openers = [*ADAPTERS.values()]\n"
        "load_model('hog')\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", ADAPTERS)
def test_every_adapter_declares_its_options(kind: str) -> None:
    opener = ADAPTERS[kind]
    assert all(option.annotation is not option.empty for option in keyword_options(opener).values())
    assert opener.__doc__ or opener.__module__


@pytest.mark.parametrize(
    ("spec", "module", "command"),
    [
        ("onnx:{file}", "onnxruntime", "pip install onnxruntime"),
        ("torch:{file}", "torch", "pip install '.[torch]'"),
        ("torchvision:fasterrcnn", "torchvision", "pip install '.[torchvision]'"),
        ("hf:{file}", "transformers", "pip install '.[hf]'"),
        ("tflite:{file}", "ai_edge_litert.interpreter", "pip install '.[litert]'"),
        ("ultralytics:{file}", "ultralytics", "pip install ultralytics"),
        ("mmdet:{file},weights={file}", "mmdet.apis", "pip install mmdet"),
        ("mmseg:{file},weights={file}", "mmseg.apis", "pip install mmsegmentation"),
        ("detectron2:{file},weights={file}", "detectron2.config", "pip install"),
    ],
)
def test_says_how_to_install_a_missing_framework(
    monkeypatch, tmp_path: Path, spec: str, module: str, command: str
) -> None:
    real = importlib.import_module

    def fake(name: str, package=None):
        if name == module:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition(".")[0])
        return real(name, package)

    monkeypatch.setattr("stormproof.core.loading.import_module", fake)
    (tmp_path / "model.bin").touch()
    with pytest.raises(MissingExtra) as error:
        load_model(spec.format(file=tmp_path / "model.bin"))
    assert error.value.install.startswith(command)
    assert error.value.install in str(error.value)
