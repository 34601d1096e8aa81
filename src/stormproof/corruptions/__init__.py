"""Corruptions and how to apply them: to an image, a sample, or truth alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from stormproof.core.condition import Condition
from stormproof.core.randomness import Frame
from stormproof.core.sample import Context, Image, Sample, Truth, check_image
from stormproof.corruptions.chain import Step, steps
from stormproof.corruptions.corruption import CORRUPTIONS, Corruption, find
from stormproof.corruptions.geometry import move_sample, move_truth
from stormproof.corruptions.needs import part_mask, part_of, refuse_part
from stormproof.corruptions.suites import SUITES, find_suite

__all__ = [
    "CORRUPTIONS",
    "SUITES",
    "Corruption",
    "apply",
    "corrupt_image",
    "find",
    "find_suite",
    "truth_under",
]


def corrupt_image(
    image: Image, condition: Condition | str, *, seed: int = 0, image_id: str | Frame = ""
) -> Image:
    """The image under a condition: same shape, same dtype, a new array.

    Random numbers depend only on (seed, image_id, corruption, severity). Conditions without a whole severity
    draw as severity 0, so a sweep over a parameter, or between severities, keeps its noise. For a frame of a
    clip, `image_id` is a Frame; what belongs to the camera or the scene then depends on its sequence.

    >>> corrupt_image(np.full((4, 4, 3), 128, np.uint8), "contrast@3").shape
    (4, 4, 3)
    """
    check_image(image)
    condition = Condition.parse(condition) if isinstance(condition, str) else condition
    for part in condition.parts:
        refuse_part(part)
    for step in steps(condition):
        image = _corrupt_step(image, step, seed, image_id, Context())
    return image.copy() if condition.is_clean else image


def apply(
    sample: Sample,
    condition: Condition | str,
    *,
    seed: int = 0,
    classes: Sequence[str] = (),
    semantic_classes: Sequence[str] = (),
) -> Sample:
    """The sample under a condition; random numbers are keyed by its id and, in a clip, its sequence.

    If the corruption moves pixels with `labels=moved`, truth and depth move with them. With `on=…` only that
    part of the image changes; its class names are looked up in `classes` (of objects) and `semantic_classes`
    (of semantic maps), else in those that the sample has from its dataset. The parts of a composed condition
    act one after the other, each on the sample that the one before it made.
    """
    condition = Condition.parse(condition) if isinstance(condition, str) else condition
    if condition.is_clean:
        return dataclasses.replace(sample, image=sample.image.copy())
    known = classes or sample.classes, semantic_classes or sample.semantic_classes
    for step in steps(condition):
        part = part_of(step.condition)
        mask = None if part is None else part_mask(sample, part, classes=known[0], semantic_classes=known[1])
        image = _corrupt_step(sample.image, step, seed, sample.frame, sample.context)
        if mask is not None:
            image = np.where(mask if image.ndim == 2 else mask[..., None], image, sample.image)
        if step.moves_labels:
            sample = move_sample(sample, *step.field((image.shape[0], image.shape[1]), sample.frame, seed))
        sample = dataclasses.replace(sample, image=image)
    return sample


def truth_under(
    truth: Truth, size: tuple[int, int], condition: Condition, *, seed: int = 0, image_id: str | Frame = ""
) -> Truth:
    """The truth about an image of that (height, width) under a condition, without its pixels."""
    for step in steps(condition):
        if step.moves_labels:
            truth = move_truth(truth, *step.field(size, image_id, seed))
    return truth


def _corrupt_step(image: Image, step: Step, seed: int, image_id: str | Frame, context: Context) -> Image:
    # For read-only images, as Pillow gives them, and for views, every kernel would be compiled once more.
    pixels = image if image.flags.writeable and image.flags.c_contiguous else image.copy()
    pixels = pixels if image.ndim == 3 else pixels[..., None]
    draw = step.draw(image_id, seed)
    return step.corruption.apply(pixels, step.condition, draw, context).reshape(image.shape)
