"""Trying the demanding conditions before a run: what cannot be made should not cost a night."""

from __future__ import annotations

from collections.abc import Sequence

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, StormproofError
from stormproof.core.sample import Sample
from stormproof.corruptions import apply, find
from stormproof.datasets.dataset import Dataset
from stormproof.metrics.metric import measures
from stormproof.models.model import Model, Precomputed
from stormproof.models.network import Network
from stormproof.models.sanity_checks import check_predictions

_TRIES = 3  # images: the first may be the only one without depth


def rehearse(dataset: Dataset, conditions: Sequence[Condition], *, images: int, seed: int) -> None:
    """Refuse a condition that needs depth, objects or files which none of the first images has.

    Images that cannot be read are passed over here; the run itself names them.
    """
    open_cases = {_what_for(c): c for c in conditions if _what_for(c)}
    problems: dict[Condition, str] = {}
    for index in range(min(images, _TRIES) if open_cases else 0):
        sample = _read(dataset, index)
        if sample is None:
            continue
        problems = {c: _problem(sample, c, dataset, seed) for c in open_cases.values()}
        open_cases = {key: c for key, c in open_cases.items() if problems[c]}
        if not open_cases:
            return
    for condition in open_cases.values():
        if condition in problems:
            raise InvalidOption(f"{condition} cannot be made on {dataset.name}: {problems[condition]}")


def require_truth(dataset: Dataset, metric: str, *, images: int) -> None:
    """Refuse a dataset whose first images have no truth that a benchmark's metric could be computed from."""
    maps = measures()[metric].section == "maps"
    for index in range(min(images, _TRIES)):
        truth = dataset.truth(index)
        if (truth.semantic if maps else truth.instances) is not None:
            return
    kind = "label maps" if maps else "objects"
    fix = "get the files that hold them, or choose the benchmark of the truth there is"
    raise InvalidOption(f"{dataset.name} has no {kind} to compute {metric} from; {fix}.")


def first_look(model: Model | Precomputed, dataset: Dataset) -> tuple[str, ...]:
    """What looks wrong in a network's answers for the first clean images.

    Only networks that we feed ourselves are asked: a user's own code is not run before the run. An error is
    left to the run, which names the image.
    """
    if not isinstance(model, Network):
        return ()
    read = (_read(dataset, index) for index in range(min(len(dataset), _TRIES)))
    samples = [sample for sample in read if sample is not None]
    try:
        said = model([sample.image for sample in samples])
    except Exception:
        return ()
    sizes = [(sample.image.shape[0], sample.image.shape[1]) for sample in samples]
    return tuple(check_predictions(model, said, sizes)) if samples else ()


def _what_for(condition: Condition) -> tuple[object, ...]:
    """What a condition asks for beyond the pixels: context of the scene, objects, files; one try for each."""
    needs = find(condition.corruption).needs if condition.corruption else ()
    texts = tuple(pair for pair in condition.params if isinstance(pair[1], str))
    return (condition.corruption, needs, texts) if needs or texts else ()


def _read(dataset: Dataset, index: int) -> Sample | None:
    try:
        return dataset[index]
    except Exception:  # whatever it is, the run will say it with the image's name
        return None


def _problem(sample: Sample, condition: Condition, dataset: Dataset, seed: int) -> str:
    names = {"classes": dataset.classes, "semantic_classes": dataset.semantic_classes}
    try:
        apply(sample, condition, seed=seed, **names)
    except StormproofError as error:
        return str(error)
    except Exception:  # the run says it with the image's name
        return ""
    return ""
