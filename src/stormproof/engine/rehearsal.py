"""Trying the demanding conditions before a run: what cannot be made should not cost a night."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stormproof.condition import Condition
from stormproof.corruptions import apply, find
from stormproof.datasets.dataset import Dataset
from stormproof.errors import InvalidOption, StormproofError
from stormproof.sample import Sample

_TRIES = 3  # images: the first may be the only one without depth


def rehearse(dataset: Dataset, conditions: Sequence[Condition], *, images: int, seed: int) -> None:
    """Refuse a condition that needs depth, objects or files which none of the first images has.

    Images that cannot be read are passed over here; the run itself names them.
    """
    demanding = {_what_for(c): c for c in conditions if _what_for(c)}
    if not demanding:
        return
    samples = list(_readable(dataset, images))
    for condition in demanding.values():
        problems = [problem for sample in samples if (problem := _problem(sample, condition, dataset, seed))]
        if samples and len(problems) == len(samples):
            raise InvalidOption(f"{condition} cannot be made on {dataset.name}: {problems[0]}")


def _what_for(condition: Condition) -> tuple[object, ...]:
    """What a condition asks for beyond the pixels: context of the scene, objects, files; one try for each."""
    needs = find(condition.corruption).needs if condition.corruption else ()
    texts = tuple(pair for pair in condition.params if isinstance(pair[1], str))
    return (condition.corruption, needs, texts) if needs or texts else ()


def _readable(dataset: Dataset, images: int) -> Iterator[Sample]:
    for index in range(min(images, _TRIES)):
        try:
            yield dataset[index]
        except Exception:  # whatever it is, the run will say it with the image's name
            continue


def _problem(sample: Sample, condition: Condition, dataset: Dataset, seed: int) -> str:
    names = {"classes": dataset.classes, "semantic_classes": dataset.semantic_classes}
    try:
        apply(sample, condition, seed=seed, **names)
    except StormproofError as error:
        return str(error)
    except Exception:  # the run says it with the image's name
        return ""
    return ""
