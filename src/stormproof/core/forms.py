"""The forms that truth and predictions take beside boxes: maps of classes or segments, arrays of objects.

A `Form` says all there is to know about one: how it is checked, written to a row and read back, what is
counted while the true one is at hand, how it moves with the image, how it is drawn, how it stands in files of
others and in what models return, and how the input of metrics is collected from a run. Tasks (`metrics.task`)
are declared over forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stormproof.core import extensions
from stormproof.core.registry import Registry

if TYPE_CHECKING:
    from stormproof.core.sample import Prediction, Truth

Array = npt.NDArray[Any]
Size = tuple[int, int]  # height, width
OBJECTS = "objects"  # the name of the form that boxes and masks are
MODEL_MS = "model_ms"  # the column of milliseconds that the model took


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a row: a list of numbers, or one list for each object. It is null where there is nothing.

    A `bulky` one counts towards the size of the groups of rows in which files are written. `holds` says what
    the numbers of a map's column are, so that others can be refused: "runs", the lengths of runs along the
    rows; "pixels", how many; "class" or "segment", numbered as in the model's maps; "true class" or "true
    segment". Columns that hold something have lists of the same length. Parts of the same version may lack a
    column that was added `later`.
    """

    name: str
    dtype: str = "float64"
    per_object: bool = False
    bulky: bool = False
    holds: str = ""
    later: bool = False


@dataclass(frozen=True, slots=True)
class Motion:
    """How a corruption moves an image of `size`: `points` are places x, y (… × 2) of the clean image and
    become places of the corrupted one."""

    size: Size
    points: Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A prediction for the image `name` and its truth, when a row is made.

    `classes` is how many classes maps may hold. `labels` maps the classes of the model's maps to those of the
    dataset's, −1 for none.
    """

    name: str
    truth: Truth
    prediction: Prediction
    classes: int
    labels: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CocoFields:
    """How an array of objects stands in the rows of COCO's annotations and results.

    A row has one of the fields `names`. `problem` says what is wrong with a row, given those that any row of
    the file has (empty: nothing). `read` makes the array from rows without problems, `write` the fields of
    one entry. `categories` is what categories state, from the rows of a file that is written.
    """

    names: tuple[str, ...]
    problem: Callable[[Mapping[str, Any], Sequence[str]], str]
    read: Callable[[Sequence[Mapping[str, Any]]], Array]
    write: Callable[[Array], Mapping[str, Any]]
    categories: Callable[[Sequence[Mapping[str, Any]]], Mapping[str, Any]] = lambda rows: {}


@dataclass(frozen=True, slots=True)
class YoloLines:
    """How an array of objects stands in the lines of YOLO's label files: after the class, and after the box
    if lines are `boxed`.

    `data.yaml` states it under `key`; `problem` says what is wrong with what it states (empty: nothing),
    `state` gives it for a written array. `count` is how many numbers a
    line has then. `places` marks those that are fractions of the image, the others are any finite numbers.
    `read` makes the array from such numbers, places in pixels; `write` the numbers of one entry. `area` is
    that of objects, from their boxes and the array.
    """

    key: str
    boxed: bool
    problem: Callable[[Any], str]
    state: Callable[[Array], Any]
    count: Callable[[Any], int]
    places: Callable[[Any], Array]
    read: Callable[[Array, Any], Array]
    write: Callable[[Array], Array]
    area: Callable[[Array, Array], Array]


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """One form, declared once with `form`.

    `name` is an attribute of `Truth` and `Prediction`, or, if there is a `shape`, a key of the `data` of
    objects: an array with an entry of that shape for each object, where −1 is a length that all objects
    share. A form that is only counted from another names it as `source`.

    `pack` gives the values of `columns` and `unpack` the form again, from a row as a dict; arrays of objects
    need neither. `derive` gives the values of `derived` columns by name. `check` raises InvalidPrediction for
    a map that does not fit its image or its classes. `move` moves an array of objects; without it, the array
    stays as it is. `lines` are the strokes that draw one object's entry, as arrays of points x, y; `paint`
    gives the class of each pixel of a map, and the class that means none. `boxes` are those around the
    entries of an array, for objects that state none, and `with_truth` further arrays that true objects then
    have, from the options of a reader. `coco` and `yolo` say how it stands in such files. `keys` are other
    names under which models return it, with what makes the array of them (None: ignored), `of_result` takes
    it, and boxes, scores and labels if only it has them, from a result object of supervision or Ultralytics,
    by key, and `check_labels` yields what is wrong with labels (from a
    `datasets.annotation_checks.Inspected`). `collect` yields, for each condition, what metrics of `inputs`
    read (from a `metrics.inputs.RunReader`), if the run has a value in the column `scored_by`.
    """

    name: str
    words: str  # what messages call its truth
    of_objects: bool = True  # whether its classes are those of objects, not those of maps
    shape: tuple[int, ...] | None = None
    source: str = ""
    columns: tuple[Column, ...] = ()
    pack: Callable[[Any], Sequence[Any]] | None = None
    unpack: Callable[[Mapping[str, Any]], Any] | None = None
    check: Callable[[Any, Size, int], None] | None = None
    derived: tuple[Column, ...] = ()
    derive: Callable[[Comparison], Mapping[str, Any]] | None = None
    move: Callable[[Array, Motion], Array] | None = None
    lines: Callable[[Array], Iterable[Array]] | None = None
    paint: Callable[[Any], tuple[Array, int]] | None = None
    boxes: Callable[[Array], Array] | None = None
    with_truth: Callable[[Array, Mapping[str, Any]], Mapping[str, Array]] = lambda array, options: {}
    coco: CocoFields | None = None
    yolo: YoloLines | None = None
    keys: Mapping[str, Callable[[Array], Array] | None] = field(default_factory=dict)
    of_result: Callable[[Any], Mapping[str, Any]] = lambda result: {}
    check_labels: Callable[[Any], Iterable[Any]] = lambda inspected: ()
    inputs: tuple[str, ...] = ()
    collect: Callable[[Any], Iterator[tuple[str, Any]]] = lambda reader: iter(())
    scored_by: str = ""

    def __post_init__(self) -> None:
        if self.shape is not None and not self.columns:
            object.__setattr__(self, "columns", (Column(self.name, per_object=True, bulky=True),))
        if self.shape is not None and not self.scored_by:
            object.__setattr__(self, "scored_by", self.name)

    @property
    def attribute(self) -> str:
        """The form that predictions and truth hold it as."""
        return self.source or self.name

    def is_in(self, truth: Truth) -> bool:
        """Whether the truth about an image has this form."""
        return truth.value(self.attribute) is not None


_POINT = replace(extensions.TASKS, kind="form of truth", plural="forms of truth")  # in the same modules
FORMS: Registry[Form] = Registry(_POINT, "stormproof.metrics")


def form(declared: Form, module: str) -> Form:
    """Register a form under its name."""
    FORMS.add(declared.name, declared, module=module)
    return declared


def forms_of(prediction: Prediction) -> list[Form]:
    """The forms that a prediction has or that are derived from those; no other file of ours is imported."""
    held = prediction.forms
    if not held:
        return []
    for name in held:
        FORMS.find(name)
    FORMS.load_offered()
    return [declared for declared in FORMS.declared.values() if declared.attribute in held]


def find_object_form(name: str) -> Form | None:
    """The declared form of that name, if it is an array of objects."""
    return FORMS[name] if name in FORMS and FORMS[name].shape is not None else None


def object_forms() -> tuple[Form, ...]:
    """Every form that is an array of objects; all files that may declare one are imported."""
    return tuple(declared for declared in FORMS.values() if declared.shape is not None)


def run_lengths(labels: Array) -> tuple[Array, npt.NDArray[np.uint32]]:
    """The values and lengths of the runs along a map's rows.

    >>> values, runs = run_lengths(np.array([[3, 3], [3, 7]], np.uint8))
    >>> values.tolist(), runs.tolist()
    ([3, 7], [3, 1])
    """
    flat = np.ravel(labels)
    starts = np.concatenate(([0], np.flatnonzero(flat[1:] != flat[:-1]) + 1))
    return flat[starts], np.diff(starts, append=flat.size).astype(np.uint32)


def map_of_runs(row: Mapping[str, Any], columns: tuple[str, str], dtype: type[np.generic]) -> Array:
    """The map whose runs a row holds in two columns, of values and of lengths."""
    values, runs = (row[name] for name in columns)
    return np.repeat(np.array(values, dtype), runs).reshape(row["height"], row["width"])
