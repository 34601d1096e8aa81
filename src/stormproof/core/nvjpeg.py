"""JPEG files decoded on a GPU, for those who ask for it: nothing promises the pixels of libjpeg."""

from __future__ import annotations

from typing import Any

import numpy as np

from stormproof.core.errors import InvalidImage, InvalidOption
from stormproof.core.frameworks import framework
from stormproof.core.sample import Image

_FIX = "leave decode=nvjpeg out"


def require_nvjpeg() -> None:
    """Say in one line why there is no such decoder here."""
    torch, _ = _libraries()
    if not torch.cuda.is_available():
        raise InvalidOption(f"decode=nvjpeg: torch {torch.__version__} finds no NVIDIA GPU here; {_FIX}.")


def decode_on_gpu(data: bytes, name: str) -> Image:
    """H×W×3, or H×W of a grey file, uint8, back in the host's memory."""
    torch, io = _libraries()
    stored = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    try:
        planes = io.decode_jpeg(stored, device="cuda")
    except RuntimeError as error:
        why = str(error).splitlines()[0]
        raise InvalidImage(f"{name}: nvJPEG cannot decode it ({why}); {_FIX}.") from error
    pixels: Image = np.ascontiguousarray(planes.permute(1, 2, 0).cpu().numpy())
    return pixels[..., 0] if pixels.shape[2] == 1 else pixels


def _libraries() -> tuple[Any, Any]:
    return framework("torch", extra="torchvision"), framework("torchvision.io", extra="torchvision")
