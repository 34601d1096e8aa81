"""Models made of a few lines of arithmetic: fast, deterministic, and broken in every way that matters."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stormproof.core.sample import RLE, Image, Prediction

MODELS = Path(__file__)  # `f\"{MODELS}:NAME\"` is the spec of a model of this file


def _boxes(image: Image, count: int = 3) -> Prediction:
    """A few boxes whose place, score and label follow from the pixels, so that every condition differs."""
    height, width = image.shape[:2]
    means = image.reshape(-1, image.shape[2]).mean(axis=0, dtype=np.float64)
    at = np.arange(count)
    x = (means[0] * (at + 1)) % (width - 8)
    y = (means[1] * (at + 1)) % (height - 8)
    sides = 4 + (means[2] + at) % 4
    scores = ((means.sum() * (at + 1)) % 97) / 97
    return Prediction(np.stack([x, y, x + sides, y + sides], 1), scores, at % 2)


def brightness_boxes(images: Sequence[Image]) -> list[Prediction]:
    """Boxes from the mean colours."""
    return [_boxes(image) for image in images]


def brightness_masks(images: Sequence[Image]) -> list[Prediction]:
    """The same with a mask of the bright pixels each."""
    found = []
    for image in images:
        boxes = _boxes(image, 2)
        masks = tuple(RLE.from_mask(image[..., 0] > level) for level in (96, 160))
        found.append(Prediction(boxes.boxes, boxes.scores, boxes.labels, masks))
    return found


def thresholds(images: Sequence[Image]) -> list[Prediction]:
    """A label map of three grey levels."""
    return [Prediction(semantic=(image.mean(axis=2) // 86).astype(np.uint8)) for image in images]


GATE = "go"  # a file in the working directory, which workers share with whoever started them
FREE_CALLS = 6  # that each process may make before it stops at the gate
_calls = 0


def gated_boxes(images: Sequence[Image]) -> list[Prediction]:
    """Answers a few calls, then waits until the file GATE exists: a run that is halfway for certain."""
    global _calls
    _calls += 1
    while _calls > FREE_CALLS and not Path(GATE).exists():
        time.sleep(0.005)
    return brightness_boxes(images)


def is_marked(image: Image) -> bool:
    """The images the broken models stumble over: the red channel of the first pixel is 255."""
    return bool(image[0, 0, 0] == 255 and image[0, 0, 1] == 0)


def raises_on_marked(images: Sequence[Image]) -> list[Prediction]:
    if any(is_marked(image) for image in images) and not os.environ.get("FIXED"):
        raise ArithmeticError("cannot divide by cheese")
    return brightness_boxes(images)


def scribbles(images: Sequence[Image]) -> list[Prediction]:
    """Writes into its images, and takes only one at a time."""
    said = brightness_boxes(images)
    for image in images:
        image[...] = 0
    if len(images) > 1:
        raise MemoryError("one at a time")
    return said


def blackens(images: Sequence[Image]) -> list[Prediction]:
    """Writes into its images."""
    said = brightness_boxes(images)
    for image in images:
        image[...] = 0
    return said


_BUFFER = (np.zeros((3, 4)), np.zeros(3), np.zeros(3, np.int64))


def reuses_its_arrays(images: Sequence[Image]) -> list[Prediction]:
    """Answers out of the same memory every time, one image per call."""
    (image,) = images
    said = _boxes(image)
    for buffer, values in zip(_BUFFER, (said.boxes, said.scores, said.labels), strict=True):
        buffer[...] = values
    return [Prediction(*_BUFFER)]


def exits_on_marked(images: Sequence[Image]) -> list[Prediction]:
    if any(is_marked(image) for image in images):
        sys.exit(3)
    return brightness_boxes(images)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def raises_without_words_on_marked(images: Sequence[Image]) -> list[Prediction]:
    if any(is_marked(image) for image in images):
        raise Unspeakable
    return brightness_boxes(images)


def raises_half_a_character_on_marked(images: Sequence[Image]) -> list[Prediction]:
    if any(is_marked(image) for image in images):
        raise ValueError("\ud800")
    return brightness_boxes(images)


def cancels_on_marked(images: Sequence[Image]) -> list[Prediction]:
    if any(is_marked(image) for image in images):
        raise asyncio.CancelledError("the server went away")
    return brightness_boxes(images)


def empties_its_list_and_reshapes(images: list[Image]) -> list[Prediction]:
    """Consumes what it is given: the list, and the shapes of its images."""
    found = []
    while images:
        image = images.pop(0)
        found.append(_boxes(image))
        image.shape = (-1,)
    return found


def nan_on_marked(images: Sequence[Image]) -> list[Prediction]:
    found = []
    for image in images:
        said = _boxes(image)
        found.append(Prediction(said.boxes * np.nan, said.scores, said.labels) if is_marked(image) else said)
    return found


def drops_marked(images: Sequence[Image]) -> list[Prediction]:
    return [_boxes(image) for image in images if not is_marked(image)]


def wrong_label_on_marked(images: Sequence[Image]) -> list[Prediction]:
    return [
        Prediction([[0, 0, 1, 1]], [0.5], [99]) if is_marked(image) else _boxes(image) for image in images
    ]


def hangs_on_marked(images: Sequence[Image]) -> list[Prediction]:
    """Never answers; the hours until its time limit pass in a moment, so no other call can exceed it."""
    if any(is_marked(image) for image in images):
        if not signal.getitimer(signal.ITIMER_REAL)[0]:
            raise AssertionError("nothing would ever interrupt this call")
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        while True:  # not pause(): a signal that comes just before it would be waited for without end
            time.sleep(0.01)
    return brightness_boxes(images)


def dies_on_marked(images: Sequence[Image]) -> list[Prediction]:
    if any(is_marked(image) for image in images):
        os.kill(os.getpid(), 9)
    return brightness_boxes(images)


def dies_once(images: Sequence[Image]) -> list[Prediction]:
    """Kills its process the first time it is called at all; a file remembers."""
    return _after_killing(os.getpid(), images)


def loses_its_job_once(images: Sequence[Image]) -> list[Prediction]:
    """Kills the process that started its own, which on a cluster is the job."""
    return _after_killing(os.getppid(), images)


def _after_killing(process: int, images: Sequence[Image]) -> list[Prediction]:
    token = Path(os.environ["DIES_ONCE"])
    if not token.exists():
        token.touch()
        os.kill(process, 9)
    return brightness_boxes(images)


def always_raises(images: Sequence[Image]) -> list[Prediction]:
    raise KeyError("weights")


def stops_once(images: Sequence[Image]) -> list[Prediction]:
    """Stops its process the first time it is called, as a driver that hangs does; a file remembers."""
    token = Path(os.environ["STOPS_ONCE"])
    if not token.exists():
        token.touch()
        os.kill(os.getpid(), signal.SIGSTOP)
    return brightness_boxes(images)
