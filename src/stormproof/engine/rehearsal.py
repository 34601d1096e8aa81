"""Trying the demanding conditions before a run: what the dataset cannot give should not cost a night."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stormproof.condition import Condition
from stormproof.corruptions import apply, find
from stormproof.corruptions.registry import part_of
from stormproof.datasets.dataset import Dataset
from stormproof.errors import InvalidOption, MissingContext, UnknownName
from stormproof.sample import Sample

_TRIES = 3  # images: the first may be the only one without depth


def rehearse(dataset: Dataset, conditions: Sequence[Condition], *, images: int, seed: int) -> None:
    """Refuse a condition that needs depth or objects which none of the first images has.

    Images that cannot be read are passed over here; the run itself names them.
    """
    demanding = {(c.corruption, part_of(c)): c for c in conditions if _demands(c)}
    if not demanding:
        return
    samples = list(_readable(dataset, images))
    for condition in demanding.values():
        problems = [problem for sample in samples if (problem := _problem(sample, condition, dataset, seed))]
        if samples and len(problems) == len(samples):
            raise InvalidOption(f"{condition} cannot be made on {dataset.name}: {problems[0]}")


def _demands(condition: Condition) -> bool:
    return condition.corruption is not None and bool(
        find(condition.corruption).needs or part_of(condition) is not None
    )


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
    except (MissingContext, UnknownName) as error:
        return str(error)
    except Exception:
        return ""
    return ""
