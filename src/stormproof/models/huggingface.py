"""Hugging Face transformers: `hf:path_or_name[,task=detection|instance|semantic|panoptic]`.

Only files on this machine are used, unless `download=true`. No code from a repository is run; weights are
read as safetensors, or as a state dict with weights_only=True.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from stormproof.core.errors import InvalidOption, ModelError
from stormproof.core.files import expand
from stormproof.core.loading import framework
from stormproof.core.masks import mask_boxes
from stormproof.core.sample import RLE, Image, Prediction, panoptic_map
from stormproof.core.spec import opens
from stormproof.models.classes import resolve_classes
from stormproof.models.fingerprint import fingerprint
from stormproof.models.model import PerImage
from stormproof.models.predictions import as_array, label_map
from stormproof.models.zero_shot import PROMPTS, ZeroShot, detector

Reader = Callable[[Any, Any, tuple[int, int], float], Prediction]

# The end of an architecture's name → the class that loads it, and its task.
_ENDINGS: dict[str, tuple[str, str]] = {
    "ForObjectDetection": ("AutoModelForObjectDetection", "detection"),
    "ForSemanticSegmentation": ("AutoModelForSemanticSegmentation", "semantic"),
    "ForUniversalSegmentation": ("AutoModelForUniversalSegmentation", "instance"),
    "ForInstanceSegmentation": ("AutoModelForInstanceSegmentation", "instance"),
    "ForSegmentation": ("AutoModelForImageSegmentation", "panoptic"),  # DETR with its mask head
}

_LEAST_SCORE = 0.01
_LEAST_SCORES = {"panoptic": 0.5}  # transformers' own


@opens("hf")
def open_huggingface(
    main: str,
    *,
    task: str | None = None,
    classes: str | None = None,
    download: bool = False,
    revision: str | None = None,
    prompt: str | None = None,
    score: float | None = None,
    threads: int = 1,
    device: str = "cpu",
) -> PerImage | ZeroShot:
    """Open a folder that `save_pretrained` wrote, or a model in the local cache (or the hub) by name.

    `task` chooses for models with several, such as Mask2Former; by default the architecture decides.
    `classes` (a vocabulary or a text file) names the labels of a model that calls them LABEL_0, LABEL_1 …, or
    the objects that a zero-shot detector looks for; by default these are the dataset's classes, each in the
    words of `prompt` ("a photo of a {}"). Objects less sure than `score` are left out: 0.01, or 0.5 for
    panoptic maps, where every pixel has one segment at most.
    """
    torch, transformers = framework("torch", extra="hf"), framework("transformers", extra="hf")
    torch.set_num_threads(threads)
    where = {"local_files_only": not download, "revision": revision, "trust_remote_code": False}
    config = _load(transformers.AutoConfig, main, where, download)
    folder = expand(main, error=ModelError)
    local = folder.is_dir()
    fetched = {} if local else {"name": main, "commit": getattr(config, "_commit_hash", None)}
    called, files = (folder.name, (folder,)) if local else (main.replace("/", "--"), ())
    if config.model_type in PROMPTS:
        net = _load(transformers.AutoModelForZeroShotObjectDetection, main, where, download).to(device).eval()
        words = _load(transformers.AutoProcessor, main, where, download)
        ask, least = prompt or PROMPTS[config.model_type], _LEAST_SCORE if score is None else score
        settings = {"score": least, "prompt": ask, **fetched}

        def looking_for(names: tuple[str, ...]) -> PerImage:
            find = detector(
                torch, net, words, config.model_type, names, prompt=ask, score=least, device=device
            )
            return PerImage(called, find, names, files=files, settings=settings)

        given = resolve_classes(classes, None)
        if given:
            return looking_for(given)
        return ZeroShot(called, fingerprint(files, settings), looking_for)
    loader, usual = _architecture(config, main)
    task = task or usual
    if task not in _READERS:
        raise InvalidOption(f"task={task}: choose one of {', '.join(_READERS)}.")
    sure = _LEAST_SCORES.get(task, _LEAST_SCORE) if score is None else score
    net = _load(getattr(transformers, loader), main, where, download).to(device).eval()
    one_former = config.model_type == "oneformer"  # takes its task as text
    loading = transformers.AutoProcessor if one_former else transformers.AutoImageProcessor
    processor = _load(loading, main, where, download)
    # OneFormer answers as MaskFormer does; its own decoder would lose masks that overlap.
    decoder = transformers.MaskFormerImageProcessor() if one_former else processor
    told = {"task_inputs": [task]} if one_former else {}

    def predict(image: Image) -> Prediction:
        size = (image.shape[0], image.shape[1])
        inputs = processor(images=image, return_tensors="pt", input_data_format="channels_last", **told)
        with torch.inference_mode():
            outputs = net(**inputs.to(device))
        return _READERS[task](decoder, outputs, size, sure)

    names, maps = _names(config, classes, main), task in ("semantic", "panoptic")
    return PerImage(
        name=called,
        predict=predict,
        classes=() if maps else names,
        semantic_classes=names if maps else (),
        files=files,
        settings={"task": task, "score": sure, **fetched},
    )


def _names(config: Any, classes: str | None, main: str) -> tuple[str, ...]:
    own = tuple(str(config.id2label[i]) for i in sorted(config.id2label))
    given = resolve_classes(classes, None)
    if given is None:
        if all(name == f"LABEL_{i}" for i, name in enumerate(own)):
            raise ModelError(
                f"hf:{main} names its {len(own)} classes LABEL_0, LABEL_1 …; add ,classes=FILE (one per "
                "line), a vocabulary such as coco80, or classes=dataset if they are the dataset's."
            )
        return own
    if given and len(given) != len(own):
        raise ModelError(f"hf:{main} has {len(own)} classes, but classes={classes} names {len(given)}.")
    return given


def _load(kind: Any, main: str, where: dict[str, Any], download: bool) -> Any:
    try:
        return kind.from_pretrained(main, **where)
    except Exception as error:  # missing, broken and hostile files raise different exceptions
        fix = "" if download else " Only files on this machine are used; download=true fetches others."
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise ModelError(f"hf:{main} cannot be opened: {reason}.{fix}") from error


def _architecture(config: Any, main: str) -> tuple[str, str]:
    for name in config.architectures or ():
        for ending, found in _ENDINGS.items():
            if name.endswith(ending):
                return found
    raise ModelError(
        f"hf:{main} is {config.architectures}; its name must end in one of {', '.join(_ENDINGS)}."
    )


def _detection(processor: Any, outputs: Any, size: tuple[int, int], score: float) -> Prediction:
    (found,) = processor.post_process_object_detection(outputs, threshold=score, target_sizes=[size])
    height, width = size
    boxes = np.clip(as_array(found["boxes"]), 0, [width, height, width, height])
    return Prediction(boxes, as_array(found["scores"]), as_array(found["labels"]))


def _instance(processor: Any, outputs: Any, size: tuple[int, int], score: float) -> Prediction:
    """Every query's own mask; transformers' default, one map without overlaps, would lose some objects."""
    (found,) = processor.post_process_instance_segmentation(
        outputs, threshold=score, target_sizes=[size], return_binary_maps=True
    )
    segments = found["segments_info"]
    planes = as_array(found["segmentation"]) if segments else np.zeros((0, *size))
    masks = tuple(RLE.from_mask(plane > 0.5) for plane in planes)
    boxes = mask_boxes(masks)
    scores = np.clip([segment["score"] for segment in segments], 0, 1)
    return Prediction(boxes, scores, np.array([s["label_id"] for s in segments], np.int64), masks)


def _semantic(processor: Any, outputs: Any, size: tuple[int, int], score: float) -> Prediction:
    (found,) = processor.post_process_semantic_segmentation(outputs, target_sizes=[size])
    return Prediction(semantic=label_map(as_array(found), "the model"))


def _panoptic(processor: Any, outputs: Any, size: tuple[int, int], score: float) -> Prediction:
    """Segments more confident than `score`; those of one class of stuff are joined when they are scored."""
    decode = processor.post_process_panoptic_segmentation
    known = "label_ids_to_fuse" in signature(decode).parameters
    fuse: dict[str, Any] = {"label_ids_to_fuse": set()} if known else {}
    (found,) = decode(outputs, threshold=score, target_sizes=[size], **fuse)
    labels = {int(segment["id"]): int(segment["label_id"]) for segment in found["segments_info"]}
    return Prediction(panoptic=panoptic_map(as_array(found["segmentation"]), labels))


_READERS: dict[str, Reader] = {
    "detection": _detection, "instance": _instance, "semantic": _semantic, "panoptic": _panoptic,
}  # fmt: skip
