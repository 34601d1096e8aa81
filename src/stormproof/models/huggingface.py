"""Hugging Face transformers: `hf:path_or_name[,task=detection|instance|semantic|panoptic]`.

Only files on this machine are used, unless `download=true`. No code from a repository is run; weights are
read as safetensors, or as a state dict with weights_only=True. Zero-shot detectors (OWL-ViT, OWLv2, Grounding
DINO) take the names of their classes as text: the dataset's, unless `classes=` gives others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from stormproof.core.errors import InvalidOption, ModelError, first_line
from stormproof.core.files import expand
from stormproof.core.forms import Array, Size
from stormproof.core.loading import framework
from stormproof.core.masks import mask_boxes
from stormproof.core.sample import RLE, Image, Ints, Prediction, panoptic_map
from stormproof.datasets.dataset import Dataset
from stormproof.models.classes import resolve_classes
from stormproof.models.decoding import corners_of_centred, in_pixels
from stormproof.models.model import ADAPTERS, PerBatch, PerImage, fingerprint
from stormproof.models.network import usual_batch
from stormproof.models.predictions import as_array, label_map
from stormproof.models.torch import torch_on

Reader = Callable[[Any, Any, Sequence[Size], float], list[Prediction]]  # of a batch

# The end of an architecture's name → the class that loads it, and its task.
_ENDINGS: dict[str, tuple[str, str]] = {
    "ForObjectDetection": ("AutoModelForObjectDetection", "detection"),
    "ForSemanticSegmentation": ("AutoModelForSemanticSegmentation", "semantic"),
    "ForUniversalSegmentation": ("AutoModelForUniversalSegmentation", "instance"),
    "ForInstanceSegmentation": ("AutoModelForInstanceSegmentation", "instance"),
    "ForSegmentation": ("AutoModelForImageSegmentation", "panoptic"),  # DETR with its mask head
}

# Zero-shot detectors: the model's type in its configuration → the prompt for a class.
_PROMPTS = {
    "owlvit": "a photo of a {}",
    "owlv2": "a photo of a {}",
    "grounding-dino": "{}",
    "mm-grounding-dino": "{}",
}
_MOST = 300  # detections of Grounding DINO kept per image, as in its own evaluation

_LEAST_SCORE = 0.01
_LEAST_SCORES = {"panoptic": 0.5}  # transformers' own


@ADAPTERS.declare("hf")
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
    batch: int | None = None,
    device: str = "cpu",
) -> PerImage | PerBatch | ZeroShot:
    """Open a folder that `save_pretrained` wrote, or a model in the local cache (or the hub) by name.

    `task` chooses for models with several, such as Mask2Former; by default the architecture decides.
    `classes` (a vocabulary or a text file) names the labels of a model that calls them LABEL_0, LABEL_1 …, or
    the objects that a zero-shot detector looks for; by default these are the dataset's classes, each in the
    words of `prompt` ("a photo of a {}"). Objects that score less than `score` are left out: 0.01, or 0.5 for
    panoptic maps, where every pixel has one segment at most. Images whose inputs have one size are run
    `batch` at a time.
    """
    torch, transformers = torch_on(device, threads, extra="hf"), framework("transformers", extra="hf")
    where = {"local_files_only": not download, "revision": revision, "trust_remote_code": False}
    config = load_pretrained(transformers.AutoConfig, main, where)
    pretrained = _Pretrained(torch, transformers, main, where, config, device)
    if config.model_type in _PROMPTS:
        return _open_zero_shot(pretrained, classes, prompt=prompt, score=score)
    return _open_trained(pretrained, classes, task=task, score=score, batch=batch)


class _Pretrained(NamedTuple):
    """What transformers opens, by folder or name, and the device that its network runs on."""

    torch: Any
    transformers: Any
    main: str
    where: dict[str, Any]
    config: Any
    device: str

    def load(self, kind: str, **options: str) -> Any:
        return load_pretrained(getattr(self.transformers, kind), self.main, {**self.where, **options})

    def load_network(self, kind: str) -> Any:
        return self.load(kind).to(self.device).eval()


def _open_zero_shot(
    pretrained: _Pretrained, classes: str | None, *, prompt: str | None, score: float | None
) -> PerImage | ZeroShot:
    """A detector that looks for what text names: for `classes`, or for a dataset's when it is bound."""
    called, files, fetched = identify(pretrained.main, pretrained.config)
    net = pretrained.load_network("AutoModelForZeroShotObjectDetection")
    processor = pretrained.load("AutoProcessor")
    ask = prompt or _PROMPTS[pretrained.config.model_type]
    sure = _LEAST_SCORE if score is None else score
    settings = {"score": sure, "prompt": ask, **fetched}

    def looking_for(names: tuple[str, ...]) -> PerImage:
        find = _zero_shot(
            pretrained.torch, net, processor, names, prompt=ask, score=sure, device=pretrained.device
        )
        return PerImage(called, find, names, files=files, settings=settings)

    given = resolve_classes(classes, None)
    return looking_for(given) if given else ZeroShot(called, fingerprint(files, settings), looking_for)


def _open_trained(
    pretrained: _Pretrained, classes: str | None, *, task: str | None, score: float | None, batch: int | None
) -> PerBatch:
    """A network trained on classes of its own."""
    from stormproof.models.on_device.processors import DeviceProcessor  # loads torch

    main, config = pretrained.main, pretrained.config
    called, files, fetched = identify(main, config)
    loader, usual = _architecture(config, main)
    task = task or usual
    if task not in _READERS:
        raise InvalidOption(f"task={task}: choose one of {', '.join(_READERS)}.")
    sure = _LEAST_SCORES.get(task, _LEAST_SCORE) if score is None else score
    net = pretrained.load_network(loader)
    one_former = config.model_type == "oneformer"  # takes its task as text
    kind = "AutoProcessor" if one_former else "AutoImageProcessor"
    processor = pretrained.load(kind, backend="pil")  # torchvision's gives other pixels
    # OneFormer answers as MaskFormer does; its own decoder would lose masks that overlap.
    decoder = pretrained.transformers.MaskFormerImageProcessor() if one_former else processor
    words = {"task_inputs": [task]} if one_former else {}

    def process(image: Image, **options: bool) -> Any:
        return processor(
            images=image, return_tensors="pt", input_data_format="channels_last", **words, **options
        )

    prepare, most = DeviceProcessor(process, pretrained.device), usual_batch(batch, pretrained.device)

    def predict(images: Sequence[Image]) -> list[Prediction]:
        predictions: list[Prediction] = []
        for places, inputs in prepare.batches(images, most):
            with pretrained.torch.inference_mode():
                outputs = net(**inputs)
            sizes = [(images[i].shape[0], images[i].shape[1]) for i in places]
            predictions += _READERS[task](decoder, outputs, sizes, sure)
        return predictions

    names, maps = _names(config, classes, main), task in ("semantic", "panoptic")
    return PerBatch(
        name=called,
        predict=predict,
        classes=() if maps else names,
        semantic_classes=names if maps else (),
        files=files,
        settings={"task": task, "score": sure, "resized by": "Pillow", **fetched},
        takes_tensors=prepare.levels is not None,
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


def identify(main: str, config: Any) -> tuple[str, tuple[Path, ...], dict[str, Any]]:
    """A model's name, its files, and what else tells it from others, if it has none here."""
    folder = expand(main, error=ModelError)
    if folder.is_dir():
        return folder.name, (folder,), {}
    return main.replace("/", "--"), (), {"name": main, "commit": getattr(config, "_commit_hash", None)}


def load_pretrained(kind: Any, main: str, where: dict[str, Any]) -> Any:
    """What `from_pretrained` of a class of transformers makes of a folder or name."""
    try:
        return kind.from_pretrained(main, **where)
    except Exception as error:  # missing, broken and hostile files raise different exceptions
        local = where["local_files_only"]
        fix = " Only files on this machine are used; download=true fetches others." if local else ""
        raise ModelError(f"hf:{main} cannot be opened: {first_line(error)}.{fix}") from error


def _architecture(config: Any, main: str) -> tuple[str, str]:
    for name in config.architectures or ():
        for ending, found in _ENDINGS.items():
            if name.endswith(ending):
                return found
    kind = config.model_type
    fix = f"its name must end in one of {', '.join(_ENDINGS)}"
    fix = f"open it as {kind}:{main}" if kind in ADAPTERS else fix
    raise ModelError(f"hf:{main} is {config.architectures}; {fix}.")


def _detection(processor: Any, outputs: Any, sizes: Sequence[Size], score: float) -> list[Prediction]:
    # Copied once for the batch; these two are what all decoders of boxes read.
    copies = SimpleNamespace(logits=outputs.logits.cpu(), pred_boxes=outputs.pred_boxes.cpu())
    decode = processor.post_process_object_detection
    return [*map(_clip_boxes, decode(copies, threshold=score, target_sizes=[*sizes]), sizes)]


def _clip_boxes(found: Any, size: Size) -> Prediction:
    """The boxes that transformers returns, cut at the image's border."""
    boxes, scores, labels = (as_array(found[key]) for key in ("boxes", "scores", "labels"))
    return Prediction(_inside(boxes, size), scores, labels)


def _inside(boxes: Array, size: Size) -> Array:
    height, width = size
    return np.clip(boxes, 0, [width, height, width, height])


def _instance(processor: Any, outputs: Any, sizes: Sequence[Size], score: float) -> list[Prediction]:
    """Every query's own mask; transformers' default, one map without overlaps, would lose some objects."""
    decode = processor.post_process_instance_segmentation
    predictions = []
    for found in decode(outputs, threshold=score, target_sizes=[*sizes], return_binary_maps=True):
        segments = found["segments_info"]
        planes = as_array(found["segmentation"]) if segments else ()
        masks = tuple(RLE.from_mask(plane > 0.5) for plane in planes)
        scores = np.clip([segment["score"] for segment in segments], 0, 1)
        labels = np.array([segment["label_id"] for segment in segments], np.int64)
        predictions.append(Prediction(mask_boxes(masks), scores, labels, masks))
    return predictions


def _semantic(processor: Any, outputs: Any, sizes: Sequence[Size], score: float) -> list[Prediction]:
    found = processor.post_process_semantic_segmentation(outputs, target_sizes=[*sizes])
    return [Prediction(semantic=label_map(as_array(plane), "the model")) for plane in found]


def _panoptic(processor: Any, outputs: Any, sizes: Sequence[Size], score: float) -> list[Prediction]:
    """Segments more confident than `score`; those of one class of stuff are joined when they are scored."""
    decode = processor.post_process_panoptic_segmentation
    known = "label_ids_to_fuse" in signature(decode).parameters
    fuse: dict[str, Any] = {"label_ids_to_fuse": set()} if known else {}
    predictions = []
    for found in decode(outputs, threshold=score, target_sizes=[*sizes], **fuse):
        labels = {int(segment["id"]): int(segment["label_id"]) for segment in found["segments_info"]}
        predictions.append(Prediction(panoptic=panoptic_map(as_array(found["segmentation"]), labels)))
    return predictions


_READERS: dict[str, Reader] = {
    "detection": _detection, "instance": _instance, "semantic": _semantic, "panoptic": _panoptic,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class ZeroShot:
    """A detector without class names yet; `bind` gives it the dataset's classes."""

    name: str
    fingerprint: str
    looking_for: Callable[[tuple[str, ...]], PerImage]
    classes: tuple[str, ...] = ()
    semantic_classes: tuple[str, ...] = ()

    def bind(self, dataset: Dataset) -> PerImage:
        if not dataset.classes:
            raise ModelError(
                f"{self.name} needs the names of its classes, but {dataset.name} has none; "
                "add ,classes=FILE (one per line)."
            )
        return self.looking_for(dataset.classes)

    def __call__(self, images: Sequence[Image]) -> list[Prediction]:
        raise ModelError(
            f"{self.name} needs the names of its classes; add ,classes=FILE (one per line) or a vocabulary."
        )


def _zero_shot(
    torch: Any, net: Any, processor: Any, classes: tuple[str, ...], *, prompt: str, score: float, device: str
) -> Callable[[Image], Prediction]:
    """A function from an image to its objects of `classes`."""
    phrases = [prompt.format(name.replace("_", " ").lower()) for name in classes]
    if net.config.model_type.startswith("owl"):
        text: Any = [phrases]
        spans: list[Ints] = []
    else:
        text = f"{'. '.join(phrases)}."
        spans = _spans(processor.tokenizer, text, phrases)

    def predict(image: Image) -> Prediction:
        size = (image.shape[0], image.shape[1])
        inputs = processor(text=text, images=image, return_tensors="pt").to(device)
        with torch.inference_mode():
            outputs = net(**inputs)
        if spans:
            return _by_tokens(outputs, spans, size, score)
        decode = processor.post_process_grounded_object_detection
        (found,) = decode(outputs, threshold=score, target_sizes=[size])
        return _clip_boxes(found, size)

    return predict


def _spans(tokenizer: Any, text: str, phrases: Sequence[str]) -> list[Ints]:
    """The places of each phrase's tokens in the tokenized text."""
    tokens = tokenizer(text, return_offsets_mapping=True)
    count, most = len(tokens["input_ids"]), tokenizer.model_max_length
    if count > most:
        raise ModelError(
            f"{len(phrases)} classes are {count} tokens, more than the model's {most}; name fewer with "
            "classes=FILE."
        )
    spans, at = [], 0
    for phrase in phrases:
        begin, end = at, at + len(phrase)
        inside = [k for k, (a, b) in enumerate(tokens["offset_mapping"]) if begin <= a < b <= end]
        spans.append(np.array(inside, np.int64))
        at = end + 2  # ". "
    return spans


def _by_tokens(outputs: Any, spans: Sequence[Ints], size: Size, score: float) -> Prediction:
    """Score every class by the mean probability of its tokens, as Grounding DINO's own COCO script does."""
    tokens = 1 / (1 + np.exp(-as_array(outputs.logits[0]).astype(np.float64)))
    scores = np.stack([tokens[:, span].mean(axis=1) for span in spans], axis=1)
    order = np.argsort(-scores, axis=None, kind="stable")[:_MOST]
    order = order[scores.ravel()[order] >= score]
    query, label = np.unravel_index(order, scores.shape)
    boxes = in_pixels(corners_of_centred(as_array(outputs.pred_boxes[0])[query].astype(np.float64)), size)
    return Prediction(_inside(boxes, size), scores.ravel()[order], label)
