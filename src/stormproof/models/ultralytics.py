"""Ultralytics' YOLO models, `ultralytics:yolo11n.pt,trust=true`, if the user has installed that package.

The package is licensed under the AGPL and is never a dependency of Stormproof. Its `.pt` files are pickles,
which can run any code when opened; exported to ONNX, the same model needs neither the package nor trust.
"""

from __future__ import annotations

import os
import re

from stormproof.core.errors import ModelError
from stormproof.core.loading import framework
from stormproof.core.sample import Image, Prediction
from stormproof.models.model import ADAPTERS, PerImage, bgr, model_file
from stormproof.models.predictions import read_prediction

_INSTALL = "pip install ultralytics  (AGPL-3.0; not part of Stormproof)"


@ADAPTERS.declare("ultralytics")
def open_ultralytics(
    main: str,
    *,
    trust: bool = False,
    score: float = 0.001,
    iou: float = 0.7,
    keep: int = 300,
    device: str = "cpu",
) -> PerImage:
    """Open a weights file; a `.pt` needs trust=true, since its author can run code here.

    Thresholds default to those of Ultralytics' own validation.
    """
    path = model_file(main, "an Ultralytics model")  # the package would download a missing file
    if path.suffix == ".pt" and not trust:
        raise ModelError(
            f"{path} is a pickle, which can run any code when opened. Export it (yolo export format=onnx) "
            f"and use onnx:{path.with_suffix('.onnx')}, or add ,trust=true if you trust its author."
        )
    if re.search(r"yolov[35][^u]*\.pt$", path.name):
        raise ModelError(
            f"Ultralytics would not open {path.name} but download its successor {path.stem}u.pt; rename the "
            "file."
        )
    # Otherwise the package checks for updates and sends usage reports.
    os.environ.setdefault("YOLO_OFFLINE", "true")
    net = framework("ultralytics", install=_INSTALL).YOLO(str(path))
    limits = {"conf": score, "iou": iou, "max_det": keep}

    def predict(image: Image) -> Prediction:
        # With retina_masks, masks have the image's size.
        (result,) = net.predict(bgr(image), device=device, retina_masks=True, verbose=False, **limits)
        return read_prediction(result, (image.shape[0], image.shape[1]), path.stem)

    names = net.names
    classes = tuple(str(names[i]) for i in sorted(names)) if isinstance(names, dict) else tuple(names)
    return PerImage(path.stem, predict, classes, classes, files=(path,), settings=limits)
