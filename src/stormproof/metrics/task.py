"""What a model may be asked to do, as values: boxes, masks, label maps, panoptic segments.

A task says which form its truth and predictions have (`core.forms`: columns of a row, motion, drawing, input
of metrics), which measure a run is reported in, which goes by class, and how wrong one image is. Tables,
reports, gates and submissions follow from it. Each is declared beside its metric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stormproof.core import extensions
from stormproof.core.forms import Form
from stormproof.core.registry import Registry
from stormproof.core.sample import Bools, Floats
from stormproof.metrics.metric import measures


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A task, declared once.

    A run may be scored for several; it is reported in the one of lowest `rank`. Boxes and masks have the same
    `form`: objects. `fits` says whether a metric's input belongs to the task, `image_errors` is the error of
    each image, `shown` says which images show which classes. Where a form is one of objects, these are judged
    one by one as `objects` says, from truth and detections with the arrays `carried`: which are found, by
    size or distance.
    """

    name: str  # as leaderboards call it
    rank: int
    form: Form
    headline: str  # the measure that a run is reported in
    per_class: str  # the measure that it is the mean of, by class
    section: str  # of its measures in tables
    fits: Callable[[Any], bool]
    image_errors: Callable[[Any], Floats]
    shown: Callable[[Any], Bools]
    objects: Any = None  # a subclass of `metrics.inputs.Objects`
    carried: tuple[str, ...] = ()
    alike: str = "IoU"  # what messages call the similarity of two objects


TASKS: Registry[Task] = Registry(extensions.TASKS, "stormproof.metrics", order=lambda declared: declared.rank)


def task(declared: Task, module: str) -> Task:
    """Register a task under its name."""
    TASKS.add(declared.name, declared, module=module)
    return declared


def all_tasks() -> tuple[Task, ...]:
    """Every task, in the order in which runs are reported."""
    return tuple(TASKS.values())


def scored_forms() -> tuple[Form, ...]:
    """The forms of all tasks, in the order in which runs are reported."""
    return tuple(dict.fromkeys(each.form for each in all_tasks()))


def task_of(metric_input: Any) -> Task:
    """The task that an input of metrics belongs to."""
    return next(each for each in all_tasks() if each.fits(metric_input))


def task_of_measure(measure: str) -> Task | None:
    """The task whose headline or section a measure belongs to; None for one of no task's own, such as E."""
    section = measures()[measure].section if measure in measures() else ""
    return next((each for each in all_tasks() if section == each.section or measure == each.headline), None)


def per_class_measure(measure: str) -> str | None:
    """The measure by class that goes with a headline; None for other measures."""
    return next((each.per_class for each in all_tasks() if each.headline == measure), None)
