"""Detectron2: `detectron2:config.yaml,weights=model.pth`.

The config is read as safe YAML and the weights with weights_only=True; `.pkl` files are refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.errors import ModelError
from stormproof.core.loading import framework
from stormproof.core.sample import Image, Prediction
from stormproof.models.classes import resolve_classes
from stormproof.models.geometry import place, plan_fit
from stormproof.models.model import ADAPTERS, PerImage, bgr, model_file
from stormproof.models.predictions import as_array, label_map, read_mask
from stormproof.models.torch import fill, load_checkpoint

_INSTALL = "pip install 'git+https://github.com/facebookresearch/detectron2'"


@ADAPTERS.declare("detectron2")
def open_detectron2(
    main: str,
    *,
    weights: str,
    classes: str = "coco80",
    semantic: bool = False,
    score: float = 0.01,
    device: str = "cpu",
) -> PerImage:
    """Build the network of a config; `semantic=true` reads its semantic head instead of its instances."""
    config_file, path = model_file(main, "a config"), model_file(weights, "weights")
    if path.suffix == ".pkl":
        fix = "load it with Detectron2 once and torch.save(model.state_dict(), 'model.pth')"
        raise ModelError(f"{path} is a pickle, which can run any code when opened; {fix}.")
    config = _config(config_file, score, device)
    torch = framework("torch", extra="torch")
    net = framework("detectron2.modeling", install=_INSTALL).build_model(config)
    fill(net, load_checkpoint(torch, path), path)
    net.eval()

    def predict(image: Image) -> Prediction:
        size = (image.shape[0], image.shape[1])
        tensor = torch.from_numpy(_pixels(image, config.INPUT))
        with torch.inference_mode():  # Detectron2 scales boxes and masks back to height and width
            (answer,) = net([{"image": tensor, "height": size[0], "width": size[1]}])
        if semantic:
            return Prediction(semantic=label_map(as_array(answer["sem_seg"]).argmax(axis=0), main))
        found = answer["instances"]
        masks = None
        if found.has("pred_masks"):
            masks = tuple(read_mask(mask, size) for mask in as_array(found.pred_masks))
        boxes, labels = as_array(found.pred_boxes.tensor), as_array(found.pred_classes)
        return Prediction(boxes, as_array(found.scores), labels, masks)

    names = resolve_classes(classes, None) or ()
    return PerImage(
        name=config_file.stem,
        predict=predict,
        classes=() if semantic else names,
        semantic_classes=names if semantic else (),
        files=(config_file, path),
        settings={"score": score},
    )


def _config(path: Path, score: float, device: str) -> Any:
    package = framework("detectron2.config", install=_INSTALL)
    config = package.get_cfg()
    # Detectron2's own reader falls back to unsafe YAML, which can run code; this call does not.
    loaded = package.CfgNode.load_yaml_with_base(str(path), allow_unsafe=False)
    config.merge_from_other_cfg(package.CfgNode(loaded))
    config.MODEL.WEIGHTS, config.MODEL.DEVICE = "", device
    config.MODEL.ROI_HEADS.SCORE_THRESH_TEST = config.MODEL.RETINANET.SCORE_THRESH_TEST = score
    return config


def _pixels(image: Image, settings: Any) -> Any:
    """The image scaled to the config's test size (0: unscaled) as Pillow does, channels first."""
    size = settings.MIN_SIZE_TEST, settings.MAX_SIZE_TEST
    fit = plan_fit((image.shape[0], image.shape[1]), size, "shortest" if size[0] else "none")
    pixels = place(image, fit, 0, "antialias")
    pixels = bgr(pixels) if settings.FORMAT == "BGR" else pixels
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)).astype(np.float32)
