"""The provenance of a run: versions, hardware, decoder. Recorded, but never part of the run's identity."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import cv2
from PIL import features

import stormproof
from stormproof.core.private import without_secrets

PACKAGES = (
    "numpy", "pillow", "numba", "scipy", "pyarrow", "torch", "torchvision",
    "transformers", "onnxruntime", "ultralytics", "mmdet", "detectron2", "ray", "submitit",
)  # fmt: skip


def provenance(device: str | None = None) -> dict[str, Any]:
    """Versions of everything that touches pixels or predictions, and the machine.

    `device` is where batches were corrupted; pixels do not depend on it.
    """
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "stormproof": stormproof.__version__,
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))}
        | {"cv2": cv2.__version__},
        "decoder": decoder(),
        "hardware": {
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "memory_gib": _memory(),
            "gpus": _gpus(),
            **({} if device is None else {"device": device}),
        },
        "folder": str(Path.cwd()),
        # Without the script's folder, which is private, and without keys.
        "command": [*_program(Path(sys.argv[0])), *map(without_secrets, sys.argv[1:])],
    }


def _program(script: Path) -> tuple[str, ...]:
    """What a shell starts a program by.

    >>> _program(Path("/usr/bin/stormproof")), _program(Path("/site/stormproof/__main__.py"))
    (('stormproof',), ('python', '-m', 'stormproof'))
    """
    return ("python", "-m", script.parent.name) if script.name == "__main__.py" else (script.name,)


def decoder() -> dict[str, str]:
    """The libraries that turn files into pixels; JPEG decoders differ by a grey level or two."""
    versions = {"pillow": _version("pillow") or "?"}
    for name, key in (("libjpeg-turbo", "libjpeg_turbo"), ("zlib", "zlib"), ("webp", "webp")):
        if features.check(key) and (text := features.version(key)):  # Pillow may be built without any
            versions[name] = text
    return versions


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _gpus() -> list[str]:
    cards = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    lines = [line for card in cards for line in card.read_text(encoding="utf-8").splitlines()]
    return [line.partition(":")[2].strip() for line in lines if line.startswith("Model")]
