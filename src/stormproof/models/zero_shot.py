"""Zero-shot detectors of transformers, which take class names as text: OWL-ViT, OWLv2, Grounding DINO.

The names are the dataset's classes, unless `classes=` gives others. `hf:` opens them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stormproof.core.errors import ModelError
from stormproof.core.sample import Image, Ints, Prediction
from stormproof.datasets.dataset import Dataset
from stormproof.models.model import PerImage
from stormproof.models.predictions import as_array

# The model's type in its configuration → the prompt for a class.
PROMPTS = {
    "owlvit": "a photo of a {}",
    "owlv2": "a photo of a {}",
    "grounding-dino": "{}",
    "mm-grounding-dino": "{}",
}
_MOST = 300  # detections kept per image, as in Grounding DINO's own evaluation


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


def detector(
    torch: Any, net: Any, processor: Any, kind: str, classes: tuple[str, ...], *, prompt: str, score: float,
    device: str,
) -> Callable[[Image], Prediction]:  # fmt: skip
    """A function from an image to its objects of `classes`."""
    phrases = [prompt.format(name.replace("_", " ").lower()) for name in classes]
    if kind.startswith("owl"):
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
        (found,) = processor.post_process_grounded_object_detection(
            outputs, threshold=score, target_sizes=[size]
        )
        return Prediction(
            _inside(as_array(found["boxes"]), size), as_array(found["scores"]), as_array(found["labels"])
        )

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


def _by_tokens(outputs: Any, spans: Sequence[Ints], size: tuple[int, int], score: float) -> Prediction:
    """Score every class by the mean probability of its tokens, as Grounding DINO's own COCO script does."""
    tokens = 1 / (1 + np.exp(-as_array(outputs.logits[0]).astype(np.float64)))
    scores = np.stack([tokens[:, span].mean(axis=1) for span in spans], axis=1)
    order = np.argsort(-scores, axis=None, kind="stable")[:_MOST]
    order = order[scores.ravel()[order] >= score]
    query, label = np.unravel_index(order, scores.shape)
    height, width = size
    centre, sides = np.split(as_array(outputs.pred_boxes[0])[query].astype(np.float64), 2, axis=1)
    boxes = np.concatenate([centre - sides / 2, centre + sides / 2], axis=1)
    return Prediction(_inside(boxes * [width, height, width, height], size), scores.ravel()[order], label)


def _inside(boxes: Any, size: tuple[int, int]) -> Any:
    height, width = size
    return np.clip(boxes, 0, [width, height, width, height])
