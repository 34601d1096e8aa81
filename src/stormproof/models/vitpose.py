r"""ViTPose of transformers: `vitpose:path_or_name,detector=onnx:yolox.onnx`.

It finds the key points of one person in a box. The boxes are those of people that `detector` finds: any other
model by its spec, in which a comma is written `\,`. Without one, the whole image is one person.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stormproof.core.errors import InvalidOption, ModelError
from stormproof.core.loading import framework
from stormproof.core.sample import Floats, Image, Prediction
from stormproof.models import load_model
from stormproof.models.classes import canonical
from stormproof.models.huggingface import identify, load_pretrained
from stormproof.models.model import ADAPTERS, Model, PerImage
from stormproof.models.predictions import as_array
from stormproof.models.torch import torch_on

_MOST = 20  # people per image: no more count in COCO's numbers


@ADAPTERS.declare("vitpose")
def open_vitpose(
    main: str,
    *,
    detector: str | None = None,
    score: float = 0.05,
    expert: int = 0,
    download: bool = False,
    revision: str | None = None,
    threads: int = 1,
    device: str = "cpu",
) -> PerImage:
    """Open a folder that `save_pretrained` wrote, or a model in the local cache (or the hub) by name.

    Boxes that the detector scores less than `score` are left out. A person's score is that of its box times
    the mean confidence of its key points. `expert` chooses the head of ViTPose+; 0 is COCO's.
    """
    torch, transformers = torch_on(device, threads, extra="hf"), framework("transformers", extra="hf")
    where = {"local_files_only": not download, "revision": revision, "trust_remote_code": False}
    net = load_pretrained(transformers.VitPoseForPoseEstimation, main, where).to(device).eval()
    processor = load_pretrained(transformers.AutoImageProcessor, main, where)
    find, finder = (_whole, None) if detector is None else _finder(detector, score)
    experts = net.config.backbone_config.num_experts
    if not 0 <= expert < experts:  # the network would answer without any head
        raise InvalidOption(f"expert={expert}: the heads of {main} are numbered 0 to {experts - 1}.")

    def predict(image: Image) -> Prediction:
        boxes, scores = find(image)
        if not len(boxes):
            return Prediction(data={"points": np.zeros((0, 0, 3))})
        boxes_given = [np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]]).tolist()]
        inputs = processor(
            images=image, boxes=boxes_given, return_tensors="pt", input_data_format="channels_last"
        )
        if experts > 1:
            inputs["dataset_index"] = torch.full((len(boxes),), expert)
        with torch.inference_mode():
            outputs = net(**inputs.to(device))
        (poses,) = processor.post_process_pose_estimation(outputs, boxes=boxes_given)
        places = np.stack([as_array(pose["keypoints"]) for pose in poses])
        sure = np.clip(np.stack([as_array(pose["scores"]) for pose in poses]), 0, 1)
        points = np.concatenate([places, sure[..., None]], axis=2).astype(np.float64)
        labels = np.zeros(len(boxes), np.int64)
        return Prediction(boxes, scores * points[..., 2].mean(axis=1), labels, data={"points": points})

    called, files, fetched = identify(main, net.config)
    return PerImage(
        name=called,
        predict=predict,
        classes=("person",),
        files=files,
        settings={"detector": finder, "score": score, "expert": expert, **fetched},
    )


def _whole(image: Image) -> tuple[Floats, Floats]:
    return np.array([[0.0, 0.0, image.shape[1], image.shape[0]]]), np.ones(1)


def _finder(spec: str, least: float) -> tuple[Callable[[Image], tuple[Floats, Floats]], str]:
    """What gives the boxes of people in an image with their scores, and the detector's fingerprint."""
    model = load_model(spec)
    names = [canonical(name) for name in model.classes]
    if not isinstance(model, Model) or canonical("person") not in names:
        raise ModelError(
            f"detector={spec} must be a model with a class person; it knows {', '.join(names[:9]) or 'none'}."
        )
    person = names.index(canonical("person"))

    def find(image: Image) -> tuple[Floats, Floats]:
        (found,) = model([image])
        kept = (found.labels == person) & (found.scores >= least)
        kept &= (found.boxes[:, 2:] > found.boxes[:, :2]).all(axis=1)
        best = np.flatnonzero(kept)[np.argsort(-found.scores[kept], kind="stable")][:_MOST]
        return found.boxes[best], found.scores[best]

    return find, model.fingerprint
