"""Stand-ins for frameworks that are not dependencies.

A stand-in has the few names that an adapter calls, with the signatures and result types of the real
package; images reach it as the real one wants them (BGR), and what it says comes back as predictions.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

IMAGE = np.zeros((20, 30, 3), np.uint8)
IMAGE[..., 0] = 255  # red


def install(monkeypatch, **modules) -> None:
    """Put stand-ins where `import` finds them; dots in names are written as two underscores."""
    for name, members in modules.items():
        module = ModuleType(name.replace("__", "."))
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, module.__name__, module)


class Weighted(torch.nn.Module):
    """A module with one weight, as a network is to a loader of state dicts."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))


def file(folder: Path, name: str, text: str = "") -> Path:
    (folder / name).write_text(text)
    return folder / name
