"""Finds a network's input format by trying the usual ones on labelled images, if its file does not state it.

A network with the wrong input still finds objects, only fewer: without labels, a weak network looks the same
as one that gets BGR instead of RGB. Each trial is an ordinary run on clean images, so its score is the one
that every later run will have.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from stormproof.core.errors import InvalidOption, StormproofError
from stormproof.datasets.opened import OpenedDataset
from stormproof.engine.api import run
from stormproof.models.card import InputCard
from stormproof.models.decoders import IMAGENET
from stormproof.models.network import Network
from stormproof.models.opened import OpenedModel
from stormproof.results.interval import Difference, Interval
from stormproof.results.scores import Scores

IMAGES = 64  # labelled images that trials are scored on
AS_GUESSED = "as guessed"
# The usual normalisations of floating-point inputs, in grey levels.
NORMALISATIONS: dict[str, Mapping[str, Any]] = {
    "0 to 255": {"mean": 0, "std": 1},
    "x / 255": {"mean": 0, "std": 255},
    "x / 127.5 − 1": {"mean": 127.5, "std": 127.5},
    "ImageNet": IMAGENET,
}
RESIZES: dict[str, Mapping[str, Any]] = {
    "stretch": {"resize": "stretch"},
    "letterbox": {"resize": "letterbox", "pad": 114},
}


@dataclass(frozen=True, slots=True)
class Trial:
    """One input format with its clean scores; `gain` is its lead over the guessed format."""

    words: str
    input: InputCard
    scores: Scores
    gain: Difference | None  # None for the guess itself

    @property
    def score(self) -> float:
        return self.scores.score(self.scores.headline)


@dataclass(frozen=True, slots=True)
class Tuning:
    """All trials, best first, and the one to use: the best if it clearly beats the guess, else the guess."""

    measure: str
    images: int
    trials: tuple[Trial, ...]
    chosen: Trial

    @property
    def verdict(self) -> str:
        """The outcome and its certainty, in words."""
        best, gain = self.trials[0], self.trials[0].gain
        if gain is None:
            return f"The input as guessed is the best of {len(self.trials)} on these {self.images} images."
        by = f"{100 * gain.interval.estimate:+.1f} points of {self.measure} ({_range(gain.interval)})"
        if self.chosen is not best and self.chosen.gain is not None:
            behind = 100 * (best.score - self.chosen.score)
            return (
                f"{self.chosen.words}: the same in BGR scores {behind:.1f} more, which is not clear on "
                f"{self.images} images, so RGB is chosen."
            )
        if self.chosen is best:
            behind = 100 * (best.score - self.trials[1].score)
            return (
                f"{best.words}: {by} against the input as guessed, which is clear; the next, "
                f"{self.trials[1].words}, is {behind:.1f} behind."
            )
        return (
            f"{best.words} scores best, {by} against the input as guessed. That is not clear on "
            f"{self.images} images, so the guess is kept; more labelled images would decide it."
        )


def input_candidates(card: InputCard) -> dict[str, InputCard]:
    """The usual input formats for a network of this size and type, by description, except the card's own.

    >>> len(input_candidates(InputCard(size=(300, 300))))
    15
    """
    numbers: Mapping[str, Mapping[str, Any]] = NORMALISATIONS if card.dtype.startswith("float") else {"": {}}
    resizes = RESIZES if card.size is not None else {"": {}}
    cards = {}
    for channels in ("RGB", "BGR"):
        for numbers_name, normalisation in numbers.items():
            for resize_name, resize in resizes.items():
                ordered = normalisation
                if normalisation is IMAGENET and channels == "BGR":
                    ordered = {key: value[::-1] for key, value in IMAGENET.items()}
                words = ", ".join(filter(None, (channels, numbers_name, resize_name)))
                changed = {"channels": channels, **ordered, **resize}
                cards[words] = InputCard.model_validate({**card.model_dump(), **changed})
    known = _format(card)
    return {words: one for words, one in cards.items() if _format(one) != known}


def _format(card: InputCard) -> tuple[object, ...]:
    """The settings in which trials differ."""
    return card.channels, card.mean, card.std, card.resize


def tune_input(network: Network, data: OpenedDataset, *, step: Callable[[], object] = lambda: None) -> Tuning:
    """Try the usual inputs on the first labelled images, and choose."""
    if not data.classes and not data.semantic_classes:
        raise InvalidOption(f"{data.name} has no labels to judge by; give --data a labelled dataset.")
    count = min(IMAGES, len(data))
    inputs = {AS_GUESSED: network.card.input, **input_candidates(network.card.input)}
    with TemporaryDirectory(prefix="stormproof-tune-") as folder:
        scored = {}
        for k, (words, card) in enumerate(inputs.items()):
            fed = replace(network, card=network.card.model_copy(update={"input": card}))
            scores = score_clean(fed, data, Path(folder) / str(k), count)
            if scores is not None:
                scored[words] = scores
            step()
    if AS_GUESSED not in scored:
        raise InvalidOption(f"{network.name} cannot be scored as it is on {data.name}; run it to see why.")
    base = scored[AS_GUESSED]
    trials = [
        Trial(
            words, inputs[words], scores, None if scores is base else (scores - base)[base.headline]["clean"]
        )
        for words, scores in scored.items()
    ]
    trials.sort(key=lambda trial: -trial.score)
    best, guess = trials[0], next(trial for trial in trials if trial.gain is None)
    # If several are equally good, any may lead by chance, without harm: no correction for many trials.
    clear = best.gain is not None and best.gain.interval.low > 0
    return Tuning(base.headline, count, tuple(trials), _prefer_rgb(best, trials) if clear else guess)


def _prefer_rgb(best: Trial, trials: Sequence[Trial]) -> Trial:
    """The same input in RGB if BGR is not clearly better: most networks are trained on RGB."""
    twin = best.words.replace("BGR", "RGB")
    other = next((trial for trial in trials if trial.words == twin and trial is not best), None)
    if best.input.channels != "BGR" or other is None or other.gain is None or other.gain.interval.low <= 0:
        return best
    lead = (best.scores - other.scores)[best.scores.headline]["clean"]
    return best if lead.interval.low > 0 else other


def score_clean(network: Network, data: OpenedDataset, out: Path, images: int) -> Scores | None:
    """The network's scores on the first clean images; None if its outputs cannot be scored."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = run(
                OpenedModel(None, network),
                data, out=out, conditions="clean", limit=images, chunk=images, progress=False,
            )  # fmt: skip
        return done.score(interval=True)
    except StormproofError:
        return None


def _range(interval: Interval) -> str:
    if isnan(interval.low):
        return "too few images for an interval"
    return f"95 % interval {100 * interval.low:+.1f} to {100 * interval.high:+.1f}"
