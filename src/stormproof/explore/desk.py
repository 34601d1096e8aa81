"""The desk that answers a page's questions: plain data from an exploration, and files of images.

It holds no arithmetic: numbers come from `Scores`, verdicts from `metrics`, pixels from `corruptions`.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from stormproof.core.condition import CLEAN, Condition
from stormproof.core.errors import InvalidOption, StormproofError, UnknownName
from stormproof.core.sample import Prediction, Truth
from stormproof.core.text import plain
from stormproof.datasets.attributes import COUNT, MEASURED, Attribute, read_attribute
from stormproof.datasets.dataset import abilities
from stormproof.explore import acts, judged, mapped, pictures, storms
from stormproof.explore.judged import JudgedCondition, Vocabulary
from stormproof.explore.subject import Exploration, Subject, grown, is_unfinished, progress
from stormproof.metrics.inputs import Maps
from stormproof.metrics.metric import measures
from stormproof.report.charts import prepare_rows, spec_of
from stormproof.report.elements import Figure
from stormproof.report.sections import Scope
from stormproof.report.sections.overview import map_of_conditions
from stormproof.report.view import drawable
from stormproof.results.worst import ImageLoss, image_losses

_CELLS = 3  # conditions of a run whose detections are kept
_SMALL = 300  # images of a dataset whose pixels may all be read for an attribute
_SHELF = 32 << 20  # bytes of small images that are kept
_ASKED = 32  # answers of models that are kept: every look needs the clean one too
_PAGES = 64  # pages whose newest request is remembered


class Dropped(StormproofError):
    """A newer request of the same page has come."""


class Turns:
    """The newest request of each page; an older one is not worth finishing."""

    def __init__(self) -> None:
        self._newest: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, page: str, turn: int) -> Callable[[], None]:
        """Note a request; the function returned raises `Dropped` once a newer one has come."""
        if not page:
            return lambda: None
        with self._lock:
            self._newest[page] = max(turn, self._newest.pop(page, 0))
            while len(self._newest) > _PAGES:
                self._newest.popitem(last=False)

        def require() -> None:
            if self._newest.get(page, turn) > turn:
                raise Dropped("A newer request of this page has come.")

        return require


class Desk:
    """Answers about one exploration; a run that grows is opened again by `progress`."""

    def __init__(self, exploration: Exploration) -> None:
        self.turns, self._shelf = Turns(), pictures.Shelf(_SHELF)
        self._take(exploration)

    def _take(self, exploration: Exploration) -> None:
        self.exploration = exploration
        self._judge = lru_cache(maxsize=_CELLS)(self._judge_conditions)
        self._columns = lru_cache(maxsize=_CELLS)(self._count_columns)
        self._asked = lru_cache(maxsize=_ASKED)(self._ask)
        self._attribute = lru_cache(maxsize=4)(self._read_attribute)
        self._counting = threading.Lock()
        self._scoring = threading.Thread(target=exploration.make_scores, daemon=True)
        self._scoring.start()

    def prepare(self) -> None:
        """Read and open whatever the first page needs, but compute no scores."""
        if all(subject.keeps_scores(intervals=True) for subject in self.exploration.subjects):
            self._scoring.join()
        self.session()
        self.map("")

    # What there is

    def session(self) -> dict[str, Any]:
        """Everything that does not change while the page is open."""
        them = self.exploration
        known = self.known_conditions()
        own = abilities(them.dataset).attributes
        small = them.images <= _SMALL
        objects = bool(them.dataset.classes) and not all(subject.only_maps for subject in them.subjects)
        names = them.dataset.classes if objects else them.dataset.semantic_classes
        return {
            "dataset": plain(them.dataset.name),
            "images": them.images,
            "objects": objects,
            "classes": [plain(name) for name in names],
            "colours": mapped.colours(tuple(them.dataset.semantic_classes)),
            "conditions": list(known),
            "corruptions": storms.usable_corruptions(them.dataset, known),
            "attributes": [*own, *((COUNT,) if them.dataset.classes else ()), *(MEASURED if small else ())],
            "errors": [word for name, word in judged.WORDS.items() if name != "Both" and objects],
            "subjects": [
                {
                    "name": subject.name,
                    "run": subject.run is not None,
                    "live": subject.live is not None,
                    "silent": subject.silent,
                }
                for subject in them.subjects
            ],
        }

    def known_conditions(self) -> tuple[str, ...]:
        """The conditions of the runs, each once."""
        runs = [subject.run for subject in self.exploration.subjects if subject.run is not None]
        return tuple(dict.fromkeys(text for run in runs for text in run.conditions))

    def progress(self) -> dict[str, Any]:
        """How far unfinished runs have come. If one has grown, the desk takes it as it is now."""
        before = [subject.run for subject in self.exploration.subjects]
        ways = [progress(subject) for subject in self.exploration.subjects]
        parts = [None if run is None else len(run.parts) for run in before]
        now = grown(self.exploration) if any(map(is_unfinished, self.exploration.subjects)) else None
        if now is not None and parts != [s.run and len(s.run.parts) for s in now.subjects]:
            self._take(now)
        scored = [subject.scores is not None for subject in self.exploration.subjects]
        problems = [subject.problem for subject in self.exploration.subjects]
        images = [
            len(subject.run.readable) if subject.run is not None else self.exploration.images
            for subject in self.exploration.subjects
        ]
        waiting = any(subject.awaits_scores for subject in self.exploration.subjects)
        return {"runs": ways, "scored": scored, "waiting": waiting, "problems": problems, "images": images}

    # The storm map

    def map(self, measure: str) -> dict[str, Any]:
        """The report's heat map of every run that is scored, and the condition of each cell."""
        several = self.exploration.scores
        waiting = any(subject.awaits_scores for subject in self.exploration.subjects)
        if not several:
            return {"figures": [], "waiting": waiting, "measures": [], "measure": ""}
        known = list(dict.fromkeys(name for scores in several for name in acts.usual_measures(scores)))
        chosen = measure or several[0].headline
        if chosen not in known:
            raise UnknownName("measure", chosen, known, f"These runs have: {', '.join(known)}.")
        having = [scores for scores in several if chosen in scores]
        scope = Scope(having, chosen, having[0], [s for s in several if chosen not in s])
        section = map_of_conditions(scope)
        figures = drawable([section], several)[0].figures if section is not None else ()
        return {
            "measure": chosen, "measures": [(name, measures()[name].section) for name in known],
            "waiting": waiting,
            "clean": {s.name: s.score(chosen) * measures()[chosen].scale for s in having},
            "figures": [self._figure(f, scope) for f in figures if f.id in ("grid", "conditions")],
        }  # fmt: skip

    def _figure(self, figure: Figure, scope: Scope) -> dict[str, Any]:
        several = [scores for scores, _ in scope.every()]
        called = {f"{scores.name} ({measure})": scores.name for scores, measure in scope.every()}
        texts = {
            (c.series, f"{c.severity:g}"): str(c)
            for scores in several
            for c in scores.corrupted
            if c.severity is not None
        }
        rows = prepare_rows(figure, figure.rows)
        if figure.id == "conditions":
            told = [{**row, "condition": row["y"], "model": called.get(row["x"], row["x"])} for row in rows]
        else:
            one = several[0].name
            told = [
                {
                    **row,
                    "condition": "clean" if row["y"] == "clean" else texts.get((row["y"], row["x"]), ""),
                    "model": called.get(row.get("panel", ""), row.get("panel", one)),
                }
                for row in rows
            ]
        return {
            "id": figure.id, "title": figure.title, "note": figure.note, "kind": str(figure.kind),
            "spec": spec_of(figure), "rows": told, "pick": list(figure.pick),
        }  # fmt: skip

    # The images of a cell

    def cell(
        self, place: int, condition: Condition, *, filters: Mapping[str, str], score: float, first: int,
        count: int,
    ) -> dict[str, Any]:  # fmt: skip
        """A window of a cell's images, worst first, with what each lost; and how many there are."""
        rows = self._ranked(self.exploration.subject(place), condition)
        for kind, value in filters.items():
            if value:
                counts = self._counts(place, condition, kind, value, score)
                rows = [loss for loss in rows if counts.get(loss.image)]
                rows.sort(key=lambda loss: -counts[loss.image])
        columns: Mapping[str, Any] = {}
        if filters.get("error") or filters.get("fate"):
            columns = self._columns(place, str(condition), score)
        ids = self._find_condition(place, condition).ids if columns else ()
        where = {name: k for k, name in enumerate(ids)}
        return {
            "total": len(rows),
            "first": first,
            "images": [
                {
                    **self._row(loss),
                    **{name: int(column[where[loss.image]]) for name, column in columns.items()},
                }
                for loss in rows[first : first + count]
            ],
        }

    def _row(self, loss: ImageLoss) -> dict[str, Any]:
        return {
            "index": self.exploration.index[loss.image], "id": plain(loss.image), "raw": loss.image,
            "error": loss.error, "clean": loss.clean, "rise": loss.rise,
        }  # fmt: skip

    def _ranked(self, subject: Subject, condition: Condition) -> list[ImageLoss]:
        """Every image under a condition, worst first where the run has a score, else in their order."""
        errors = subject.scores.image_errors if subject.scores is not None else None
        text = str(condition)
        if errors is None or text not in errors.by_condition:
            run = subject.run
            ids = run.ids if run is not None else self.exploration.ids[: self.exploration.images]
            return [ImageLoss(name, text, math.nan, math.nan) for name in ids]
        losses = image_losses(errors, text)
        if condition.is_clean:
            return sorted(losses, key=lambda loss: -loss.error)
        return sorted(losses, key=lambda loss: (-loss.rise, -loss.error))

    def _counts(
        self, place: int, condition: Condition, kind: str, value: str, score: float
    ) -> dict[str, int]:
        """By image, how much it shows of what a filter asks for."""
        if kind == "slice":
            name, _, wanted = value.partition(":")
            names = self.exploration.ids[: self.exploration.images]
            values = self._attribute(name).values
            return {image: int(held == wanted) for image, held in zip(names, values, strict=True)}
        if self.exploration.subject(place).run is None:
            raise InvalidOption(f"Filtering by {kind} needs a run.")
        cell = self._find_condition(place, condition)
        if kind == "class":
            return dict(zip(cell.ids, map(int, cell.shown(value)), strict=True))
        columns = self._columns(place, str(condition), score)
        if value not in columns:
            raise UnknownName("filter", value, list(columns), f"There are {', '.join(columns)}.")
        return dict(zip(cell.ids, map(int, columns[value]), strict=True))

    def slices(self, name: str) -> dict[str, Any]:
        """The values of an attribute of images."""
        attribute = self._attribute(name)
        return {"name": attribute.name, "values": list(attribute.slices), "note": attribute.note}

    def _read_attribute(self, name: str) -> Attribute:
        them = self.exploration
        if name not in (*abilities(them.dataset).attributes, COUNT, *MEASURED):  # never a file
            raise UnknownName("attribute", name, [*abilities(them.dataset).attributes, COUNT, *MEASURED])
        if name in MEASURED and them.images > _SMALL:
            raise InvalidOption(f"{name} would read all {them.images} images; {_SMALL} is the most.")
        return read_attribute(them.dataset, name, range(them.images))

    def tallies(self, place: int, condition: Condition) -> dict[str, Any] | None:
        """Right and wrong predictions of a whole cell, at every score threshold, and clean beside them."""
        subject = self.exploration.subject(place)
        if subject.run is None or str(condition) not in subject.run.conditions:
            return None
        cell = self._find_condition(place, condition)
        if isinstance(cell.metric_input, Maps):
            return {"pixels": mapped.pixels_of_cell(cell.metric_input), "images": len(cell.ids)}
        made, before = judged.tallies(cell), self._judge(place, str(condition)).get("clean")
        if made is None or condition.is_clean or before is None:
            return made
        return {**made, "clean": judged.tallies(before)}

    def _find_condition(self, place: int, condition: Condition) -> JudgedCondition:
        conditions = self._judge(place, str(condition))
        if str(condition) not in conditions:
            raise InvalidOption(f"The run has no complete cell {condition}.")
        return conditions[str(condition)]

    def _judge_conditions(self, place: int, text: str) -> dict[str, JudgedCondition]:
        run = self.exploration.subject(place).run
        if run is None or text not in run.conditions or run.missing.get(text):
            return {}
        both = [t for t in dict.fromkeys(("clean", text)) if t in run.conditions and not run.missing.get(t)]
        with self._counting:
            return judged.judge_conditions(run, both)

    def _count_columns(self, place: int, text: str, score: float) -> Mapping[str, Any]:
        conditions = self._judge(place, text)
        if text not in conditions:
            return {}
        return judged.per_image(conditions[text], conditions.get("clean"), score)

    # The microscope

    def look(self, index: int, condition: Condition, require: Callable[[], None]) -> dict[str, Any]:
        """One image under a condition: truth, and what every subject predicts."""
        them = self.exploration
        sample = them.sample(index, condition)
        require()
        outlines = any(s.scores is not None and "mask AP" in s.scores.per_condition for s in them.subjects)
        answers = []
        for subject in them.subjects:
            prediction, source = self.prediction(subject, index, condition)
            require()
            before, _ = (prediction, source) if condition.is_clean else self.prediction(subject, index, CLEAN)
            answer = self._answer(subject, prediction, before, sample.truth)
            error = self._error(subject, them.ids[index], str(condition))
            answers.append({**answer, "source": source, "error": error})
        names = tuple(them.dataset.classes)
        return {
            **storms.describe(condition),
            "image": plain(them.ids[index]), "raw": them.ids[index], "index": index,
            "width": sample.image.shape[1], "height": sample.image.shape[0],
            "truth": judged.true_objects(sample.truth, Vocabulary(names, names), outlines=outlines),
            "subjects": answers,
            "carried": judged.carried(sample.truth),
        }  # fmt: skip

    def prediction(self, subject: Subject, index: int, condition: Condition) -> tuple[Prediction | None, str]:
        """What a subject predicts, and whether its run stored that or the model was asked now."""
        stored = subject.stored(self.exploration.image_id(index), str(condition))
        if stored is not None:
            return stored, "stored"
        if subject.live is None:
            return None, "none"
        return self._asked(self.exploration.subjects.index(subject), index, condition), "live"

    def _ask(self, place: int, index: int, condition: Condition) -> Prediction:
        live = self.exploration.subjects[place].live
        assert live is not None
        return live.predict(self.exploration.sample(index, condition))

    def _answer(
        self, subject: Subject, prediction: Prediction | None, before: Prediction | None, truth: Truth
    ) -> dict[str, Any]:
        if prediction is None:
            return {"why": subject.silent, "found": [], "objects": {}, "map": False, "judged": False}
        things: list[Any] = []
        objects: dict[str, float] = {}
        dataset = self.exploration.dataset
        is_map = prediction.semantic is not None or prediction.panoptic is not None
        if judges_objects := bool(dataset.classes) and not (is_map and not len(prediction)):
            vocabulary = Vocabulary.of(subject.classes, dataset.classes)
            things, objects = judged.predicted_objects(prediction, truth, vocabulary, before=before)
        maps = Vocabulary.of(subject.semantic_classes, dataset.semantic_classes)
        return {
            "why": "", "found": things, "objects": objects, "map": is_map, "judged": judges_objects,
            "pixels": mapped.pixels_of_image(prediction, truth, maps),
        }  # fmt: skip

    @staticmethod
    def _error(subject: Subject, image: str, condition: str) -> float | None:
        """The error of one image alone, if the run has scored it."""
        errors = subject.scores.image_errors if subject.scores is not None else None
        if errors is None or condition not in errors.by_condition or image not in errors.ids:
            return None
        return float(errors.by_condition[condition][errors.ids.index(image)])

    def picture(self, index: int, condition: Condition, require: Callable[[], None]) -> bytes:
        """An image under a condition, every pixel as the model is given it."""
        require()
        return pictures.png(self.exploration.sample(index, condition).image)

    def thumbnail(self, index: int, condition: Condition) -> bytes:
        key = (index, str(condition))
        made = self._shelf.get(key)
        if made is not None:
            return made
        return self._shelf.put(key, pictures.thumbnail(self.exploration.sample(index, condition).image))

    def painting(self, place: int, index: int, condition: Condition) -> bytes:
        """A predicted map in colours."""
        prediction, _ = self.prediction(self.exploration.subject(place), index, condition)
        made = None if prediction is None else pictures.painting(prediction, self.exploration.dataset)
        if made is None:
            raise InvalidOption("There is no map of this image.")
        return made

    # Acts

    def acts(self, place: int, index: int, condition: Condition, row: Mapping[str, Any]) -> dict[str, Any]:
        """The look as commands, as Python and as a requirement, with the gate's verdict on it."""
        them, subject = self.exploration, self.exploration.subject(place)
        made: dict[str, Any] = acts.commands(them, subject, condition)
        made["python"] = acts.python(them, subject, them.image_id(index), condition)
        if row.get("metric"):
            asked, text = acts.requirement({**row, "condition": str(condition)})
            made |= {"requirement": text, "verdict": acts.verdict(asked, subject)}
            run = subject.run
            made["peeking"] = acts.PEEKING if run is not None and str(condition) in run.conditions else ""
            made["gate"] = acts.gate(subject, condition)
        return made

    def table(self, index: int, condition: Condition) -> str:
        """What is drawn, as CSV."""
        seen = self.look(index, condition, lambda: None)
        answers = zip(self.exploration.subjects, seen["subjects"], strict=True)
        by_name = {subject.name: answer for subject, answer in answers}
        judged_objects = any(answer["judged"] for answer in seen["subjects"])
        return acts.table(seen["raw"], seen["condition"], seen["truth"] if judged_objects else (), by_name)
