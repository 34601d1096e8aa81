"""MMDetection and MMSegmentation: `mmdet:config.py,weights=checkpoint.pth`, `mmseg:config.py,weights=…`.

The config is Python code and is executed, as OpenMMLab does; the checkpoint is read with weights_only=True,
and a training log in it is not opened. Both toolboxes take BGR arrays.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.errors import ModelError
from stormproof.core.loading import framework
from stormproof.core.masks import mask_boxes
from stormproof.core.sample import Image, Prediction
from stormproof.models.classes import resolve_classes
from stormproof.models.model import ADAPTERS, PerImage, bgr, model_file
from stormproof.models.predictions import as_array, label_map, read_mask
from stormproof.models.torch import fill, load_checkpoint


@ADAPTERS.declare("mmdet")
def open_mmdet(
    main: str, *, weights: str, classes: str | None = None, score: float = 0.01, device: str = "cpu"
) -> PerImage:
    """A detector or instance segmenter; `classes` is needed if the checkpoint does not name them."""
    package = framework("mmdet.apis", install="pip install mmdet mmengine mmcv")
    config, path = model_file(main, "a config"), model_file(weights, "a checkpoint")
    net = package.init_detector(str(config), checkpoint=None, device=device)
    names = _fill(net, path, classes)

    def predict(image: Image) -> Prediction:
        found = package.inference_detector(net, bgr(image)).pred_instances
        scores = as_array(found.scores)
        kept = scores >= score
        size = (image.shape[0], image.shape[1])
        boxes, masks = as_array(found.bboxes)[kept], None
        if "masks" in found:
            masks = tuple(read_mask(mask, size) for mask in as_array(found.masks)[kept])
            empty = np.any(boxes[:, 2:] <= boxes[:, :2], axis=1, keepdims=True)  # all of SOLO's are zeros
            boxes = np.where(empty, mask_boxes(masks).astype(boxes.dtype), boxes)
        return Prediction(boxes, scores[kept], as_array(found.labels)[kept], masks)

    return PerImage(config.stem, predict, names, files=(config, path), settings={"score": score})


@ADAPTERS.declare("mmseg")
def open_mmseg(main: str, *, weights: str, classes: str | None = None, device: str = "cpu") -> PerImage:
    """A semantic segmenter."""
    package = framework("mmseg.apis", install="pip install mmsegmentation mmengine mmcv")
    config, path = model_file(main, "a config"), model_file(weights, "a checkpoint")
    net = package.init_model(str(config), checkpoint=None, device=device)
    names = _fill(net, path, classes)

    def predict(image: Image) -> Prediction:
        answer = package.inference_model(net, bgr(image))
        return Prediction(semantic=label_map(as_array(answer.pred_sem_seg.data)[0], config.stem))

    return PerImage(config.stem, predict, semantic_classes=names, files=(config, path))


class _Ignored:
    """Replaces an object of a checkpoint that is not opened; accepts anything and keeps nothing."""

    def __init__(self, *args: object) -> None: ...

    def __setstate__(self, state: object) -> None: ...

    def __len__(self) -> int:
        return 0


# The types in a training log, which mmengine writes into checkpoints beside the weights.
_LOG = (
    "mmengine.logging.history_buffer.HistoryBuffer", "builtins.getattr", "numpy.ndarray", "numpy.dtype",
    "numpy._core.multiarray._reconstruct", "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray.scalar", "numpy.core.multiarray.scalar",
)  # fmt: skip


def _fill(net: Any, path: Path, classes: str | None) -> tuple[str, ...]:
    """Load a checkpoint into the network; return the class names, given or from the checkpoint.

    The network's own names are not used: MMDetection sets them to COCO's when it loads no checkpoint.
    """
    torch = framework("torch", extra="torch")
    allow = getattr(torch.serialization, "safe_globals", None)  # torch 2.5
    with allow([(_Ignored, name) for name in _LOG]) if allow else nullcontext():
        checkpoint = load_checkpoint(torch, path)
    fill(net, checkpoint, path)
    if classes is not None:
        return resolve_classes(classes, None) or ()
    meta = checkpoint.get("meta") or {}
    about = meta.get("dataset_meta") or meta
    names = tuple(about.get("classes") or about.get("CLASSES") or ())
    if not names:
        raise ModelError(f"{path} names no classes; add ,classes=coco80 or a text file with one per line.")
    return names
