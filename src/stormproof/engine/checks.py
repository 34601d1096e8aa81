"""What is checked before a run begins: finding out during the run could cost a night."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from stormproof import datasets, models
from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, StormproofError
from stormproof.core.files import is_file
from stormproof.core.forms import FORMS, OBJECTS
from stormproof.core.sample import Sample
from stormproof.core.spec import OBJECT
from stormproof.corruptions import apply
from stormproof.corruptions.chain import needs
from stormproof.datasets.dataset import Dataset, abilities
from stormproof.datasets.image_files import has_files, image_path
from stormproof.engine.pair import Pair
from stormproof.metrics.task import task_of_measure
from stormproof.models.classes import is_background, match_classes
from stormproof.models.model import Model, Precomputed
from stormproof.models.network import Network
from stormproof.models.sanity_checks import find_faults

_MODEL_FILES = (".py", ".onnx", ".tflite", ".pt", ".pth")
_TRIES = 3  # images: the first may be the only one without depth


def refuse_swapped(model: str, data: str) -> None:
    """Refuse a dataset given as the model, or the reverse."""
    model_kinds, data_kinds = models.ADAPTERS, datasets.READERS
    given_model, given_data = model.partition(":")[0], data.partition(":")[0]
    if OBJECT in (given_model, given_data):
        return
    if given_model in data_kinds and given_model not in model_kinds:
        wrong = f"--model {model}: {given_model}: is a kind of dataset"
    elif given_data in model_kinds and given_data not in data_kinds:
        wrong = f"--data {data}: {given_data}: is a kind of model"
    elif given_data.endswith(_MODEL_FILES):
        wrong = f"--data {data} names a model"
    else:
        return
    raise InvalidOption(f"{wrong}. Were --model and --data swapped?")


def require_common_classes(pair: Pair) -> None:
    """Refuse a model that shares no class with the dataset; background alone does not count."""
    model, dataset = pair.model, pair.dataset
    sides = (
        (model.classes, dataset.classes),
        (model.semantic_classes, dataset.semantic_classes),
    )
    both = [(theirs, ours) for theirs, ours in sides if theirs and ours]
    if not both and all(any(names) for names in zip(*sides, strict=True)):
        kind = "objects" if model.classes else "label maps"
        raise InvalidOption(
            f"{model.name} predicts {kind}, but {dataset.name} has no truth for them, so nothing could be "
            "scored; open its other truth (voc-seg: for voc:, panoptic: for coco:, or a map made from the "
            "outlines of one class, coco:…,semantic=person) or another dataset."
        )
    for theirs, ours in both:
        if all(is_background(name) for name, label in match_classes(theirs, ours).pairs if label >= 0):
            raise InvalidOption(
                f"No class of {model.name} ({', '.join(theirs[:5])} …) is a class of {dataset.name} "
                f"({', '.join(ours[:5])} …); {_how_to_name(theirs, ours)}"
            )


def _how_to_name(theirs: Sequence[str], ours: Sequence[str]) -> str:
    """What to add to a model's spec so that its classes are the dataset's."""
    if all(name.isdigit() for name in theirs):
        known = "coco80" if len(theirs) == 80 else "dataset" if len(theirs) == len(ours) else "[cat,dog]"
        return f"they are numbers: name all {len(theirs)}, for example with ',classes={known}'."
    first = next((name for name in ours if not is_background(name)), ours[0])
    return f"if one of them means the same, say so: add ',rename.{theirs[-1]}={first}' to the model."


def require_images(dataset: Dataset, images: int, *, allow_missing: bool) -> None:
    """Refuse a dataset whose image files do not exist: all of them, or some unless that is allowed.

    Files that exist and cannot be decoded are found during the run.
    """
    paths = [image_path(dataset, index) for index in range(images)] if has_files(dataset) else []
    missing = [path for path in paths if path is not None and not is_file(path)]
    if missing and len(missing) == images:
        raise InvalidOption(
            f"None of the {images} images of {dataset.name} exists; the first would be {missing[0]}. "
            "Name the folder of the images, for most formats with images=DIR."
        )
    if missing and not allow_missing:
        raise InvalidOption(
            f"{len(missing)} of {images} images of {dataset.name} are missing; the first: {missing[0]}. "
            f"Restore them, or run on the other {images - len(missing)} with --allow-missing."
        )


def require_place(profile: str) -> None:
    """Refuse a file that could not be written at the end of a run, which cannot measure its times again."""
    path = Path(profile).absolute()
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidOption(f"--profile {profile}: name a file in a folder that exists and can be written.")


def require_truth(dataset: Dataset, metric: str, *, images: int) -> None:
    """Refuse a dataset whose first images lack the truth that a benchmark's metric is computed from."""
    task = task_of_measure(metric)
    form = FORMS[OBJECTS] if task is None else task.form
    if any(form.is_in(dataset.truth(index)) for index in range(min(images, _TRIES))):
        return
    fix = "add the files that hold them, or choose a benchmark for the truth there is"
    raise InvalidOption(f"{dataset.name} has no {form.words} to compute {metric} from; {fix}.")


def require_possible(dataset: Dataset, conditions: Sequence[Condition], *, images: int, seed: int) -> None:
    """Refuse a condition that needs depth, objects or files that none of the first images has. Images that
    cannot be read are skipped here; the run itself names them."""
    untried = {_needs_of(c): c for c in conditions if _needs_of(c)}
    problems: dict[Condition, str] = {}
    for index in range(min(images, _TRIES) if untried else 0):
        sample = _read(dataset, index)
        if sample is None:
            continue
        problems = {c: _problem(sample, c, dataset, seed) for c in untried.values()}
        untried = {key: c for key, c in untried.items() if problems[c]}
        if not untried:
            return
    for condition in untried.values():
        if condition in problems:
            raise InvalidOption(f"{condition} cannot be made on {dataset.name}: {problems[condition]}")


def depth_doubts(dataset: Dataset, conditions: Sequence[Condition]) -> str:
    """A warning about images with doubtful depth, if a condition needs depth; else empty."""
    needed = any("depth" in needs(condition) for condition in conditions)
    return abilities(dataset).depth_remark if needed else ""


def first_look(model: Model | Precomputed, dataset: Dataset) -> tuple[str, ...]:
    """What looks wrong in a network's predictions for the first clean images.

    Only networks with a card are called: a user's own code is not run before the run. Errors are left to the
    run, which names the image.
    """
    if not isinstance(model, Network):
        return ()
    read = (_read(dataset, index) for index in range(min(len(dataset), _TRIES)))
    samples = [sample for sample in read if sample is not None]
    try:
        predictions = model([sample.image for sample in samples])
    except Exception:
        return ()
    sizes = [(sample.image.shape[0], sample.image.shape[1]) for sample in samples]
    return tuple(words for words, _ in find_faults(model, predictions, sizes)) if samples else ()


def _needs_of(condition: Condition) -> tuple[object, ...]:
    """What a condition needs beyond the pixels: depth, objects, files. Equal needs are tried once."""
    needed = needs(condition)
    texts = tuple(pair for part in condition.parts for pair in part.params if isinstance(pair[1], str))
    return (condition.corruption, needed, texts) if needed or texts else ()


def _read(dataset: Dataset, index: int) -> Sample | None:
    try:
        return dataset[index]
    except Exception:  # whatever it is, the run reports it with the image's name
        return None


def _problem(sample: Sample, condition: Condition, dataset: Dataset, seed: int) -> str:
    names = {"classes": dataset.classes, "semantic_classes": dataset.semantic_classes}
    try:
        apply(sample, condition, seed=seed, **names)
    except Exception as error:  # the run reports others than ours, with the image's name
        return str(error) if isinstance(error, StormproofError) else ""
    return ""
