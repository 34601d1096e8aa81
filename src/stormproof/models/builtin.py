"""Networks that come with the package: `builtin:street-centre[,threads=2,score=0.3]`."""

from __future__ import annotations

from stormproof.core.spec import opens
from stormproof.models.network import Network
from stormproof.models.networks import find_builtin
from stormproof.models.onnx import open_onnx


@opens("builtin")
def open_builtin(
    main: str,
    *,
    threads: int = 1,
    batch: int = 1,
    device: str = "cpu",
    score: float | None = None,
    iou: float | None = None,
    keep: int | None = None,
) -> Network:
    """Open a network by its name; everything else is as for any ONNX file."""
    path = find_builtin(main).path
    return open_onnx(str(path), threads=threads, batch=batch, device=device, score=score, iou=iou, keep=keep)
