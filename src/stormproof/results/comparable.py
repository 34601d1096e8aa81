"""Whether two sets of scores may be compared, over the same images, labels and classes; their differences."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, NamedTuple

from stormproof.core.errors import InvalidOption, counted, first_few
from stormproof.metrics.metric import measures
from stormproof.results.interval import Difference, paired_differences
from stormproof.results.sets import NO_CONDITIONS, sets_of

if TYPE_CHECKING:
    from stormproof.results.scores import Scores


class ImageSet(NamedTuple):
    """The images and labels that scores are of, as far as is known."""

    dataset: str
    fingerprint: str  # "" for numbers that a paper printed
    images: int | None
    left_out: tuple[str, ...]


def image_set(scores: Scores) -> ImageSet:
    """The images and labels of scores, from the run's record or the submission."""
    record = scores.record
    fingerprint = scores.origin.fingerprint if record is None else record.dataset.fingerprint
    return ImageSet(scores.dataset, fingerprint, scores.images, scores.left_out)


def image_difference(a: Scores, b: Scores) -> str:
    """How the images or labels of two sets of scores differ, in words; empty if they do not, as far as is
    known: papers print no fingerprints."""
    ours, theirs = image_set(a), image_set(b)
    odd = _read_in_one(a, b)
    if odd:
        images = counted(len(odd), "image")
        return f"{images} could be read in one run and not in the other ({first_few(odd)})"
    known = ours.fingerprint and theirs.fingerprint
    counts = None not in (ours.images, theirs.images) and ours.images != theirs.images
    other = ours.fingerprint != theirs.fingerprint if known else ours.dataset != theirs.dataset
    if not counts and not other:
        return ""
    alike = " with other images or labels" if ours.dataset == theirs.dataset and not counts else ""
    return f"{a.name} was run on {_words(ours)}, {b.name} on {_words(theirs)}{alike}"


def _read_in_one(a: Scores, b: Scores) -> list[str]:
    """The images that only one of two runs of the same dataset could read."""
    if a.record is None or b.record is None or a.record.images != b.record.images:
        return []
    if a.record.dataset.fingerprint != b.record.dataset.fingerprint:
        return []
    return sorted({*a.left_out} ^ {*b.left_out})


def _words(images: ImageSet) -> str:
    count = "" if images.images is None else f"{counted(images.images, 'image')} of "
    return f"{count}{images.dataset}"


def require_same_images(a: Scores, b: Scores) -> None:
    """Refuse two runs on different images: their scores cannot be paired."""
    if a.record is None or b.record is None:
        raise InvalidOption("Only run folders can be paired: published numbers have no images.")
    difference = image_difference(a, b)
    if difference:
        fix = "Each run's own command tries the images it lacks again." if _read_in_one(a, b) else ""
        raise InvalidOption(f"{difference}; they must be the same images. {fix}".strip())


def classes_in(scores: Scores, by_class: str) -> frozenset[str]:
    """The classes that a measure by class covers; empty for published numbers, which do not tell."""
    return frozenset(next(iter(scores.per_class.get(by_class, {}).values()), {}))


def require_same_classes(a: Scores, b: Scores) -> None:
    """Refuse scores over different classes: their means differ even if the models do not."""
    shared = a.per_class.keys() & b.per_class.keys()  # one of them may have label maps as well
    odd = sorted({name for kind in shared for name in classes_in(a, kind) ^ classes_in(b, kind)})
    if odd:
        raise InvalidOption(
            f"{a.name} and {b.name} are scored over different classes, so their means cannot be compared: "
            f"only one of them has {first_few(odd)}. Score both over the same classes."
        )


def differences(a: Scores, b: Scores, wanted: Container[str]) -> dict[str, dict[str, Difference]]:
    """The paired differences of wanted measures of two runs on the same images, by measure and name.

    Names are conditions and, under flat names, aggregates over the conditions that both runs have. Holm's
    correction covers all conditions, all corruptions, and so on; 'P', 'mPC' and 'rPC' stand alone.
    """
    require_same_images(a, b)
    if a.replicates is None or b.replicates is None:
        raise InvalidOption("A difference needs intervals of both runs; ask for score(interval=True).")
    ours, theirs = a.replicates.count, b.replicates.count
    if ours != theirs:
        raise InvalidOption(f"There are {ours} and {theirs} replicates; use the same number for both.")
    return {
        measure: _differences(measure, a, b)
        for measure in a.replicates.per_condition
        if measure in b.replicates.per_condition and measure in wanted
    }


def _differences(measure: str, a: Scores, b: Scores) -> dict[str, Difference]:
    common = [text for text in a.conditions if text in b.conditions]
    sets = sets_of(common, a.benchmark if a.benchmark == b.benchmark else None)
    over = sets[0] if sets else NO_CONDITIONS
    values = [side.values(measure, over) for side in (a, b)]
    spread = [side.spread(measure, over) for side in (a, b)]
    names = [name for name in values[0] if name in values[1] and all(name in side for side in spread)]
    families: dict[str, list[str]] = {}
    for name in names:
        family = "conditions" if name in common else name.partition("/")[0]
        families.setdefault(family, []).append(name)
    result: dict[str, Difference] = {}
    for members in families.values():
        result |= paired_differences(
            {name: float(values[0][name] - values[1][name]) for name in members},
            {name: spread[0][name] - spread[1][name] for name in members},
            images=a.units_of(measure), most=measures()[measure].most,
        )  # fmt: skip
    return result
