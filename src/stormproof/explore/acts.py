"""From a look to an act: what is on the screen as commands, as Python, as a requirement, as a table."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from stormproof.core.condition import Condition
from stormproof.core.errors import StormproofError
from stormproof.core.text import as_csv
from stormproof.explore.subject import Exploration, Subject
from stormproof.metrics.metric import measures
from stormproof.results.looks import read_looks, spent_at
from stormproof.results.requirements import Requirement, parse
from stormproof.results.scores import Scores
from stormproof.results.verdicts import judge, look_at

COLUMNS = (
    "image", "condition", "model", "what", "class", "score", "verdict", "x1", "y1", "x2", "y2",
    "pixels", "wrong_pixels", "iou",
)  # fmt: skip
# A requirement that is chosen because a run fails it, or meets it, is not tested by that run.
PEEKING = (
    "You have looked at these images, so this verdict is a preview and no evidence: a threshold chosen here "
    "fits these images better than new ones. Write the requirement down first, then check it on a run of "
    "images that nobody has looked at."
)


def commands(exploration: Exploration, subject: Subject, condition: Condition) -> dict[str, str]:
    """Lines for a shell: copies of the images as they are shown, and a run under this condition."""
    data, text, seed = subject.specs[1], str(condition), exploration.seed
    folder = re.sub(r"[^a-z0-9_.-]+", "-", text).strip("-")
    again = ["--seed", str(seed)] if seed else []
    corrupt = ["stormproof", "corrupt", data, "--conditions", text, "--out", f"corrupted/{folder}", *again]
    run = _run(subject, data, text)
    if exploration.images < len(exploration.dataset):
        again += ["--limit", str(exploration.images)]
    run += ["--out", f"runs/{folder}", *again]
    made = {"run": shlex.join(run), "condition": text}
    return made if condition.is_clean else {"corrupt": shlex.join(corrupt), **made}


def python(exploration: Exploration, subject: Subject, image: str, condition: Condition) -> str:
    """The same look in Python; a condition that the run lacks asks the model."""
    model, data = subject.specs
    text = str(condition)
    if subject.run is not None and text in subject.run.conditions:
        return "\n".join(
            [
                "import stormproof as sp", "",
                f"run = sp.Run({str(subject.run.folder)!r})",
                f"sample = run.sample({image!r}, {text!r})",
                f"prediction = run.predictions_of({image!r})[{text!r}]",
                "sp.draw(sample, prediction)",
            ]
        )  # fmt: skip
    return "\n".join(
        [
            "import stormproof as sp", "",
            f"dataset, model = sp.open_dataset({data!r}), sp.open_model({model!r})",
            f"sample = sp.apply(dataset[dataset.ids.index({image!r})], {text!r}, seed={exploration.seed})",
            "(prediction,) = model([sample.image])",
            "sp.draw(sample, prediction)",
        ]
    )  # fmt: skip


def requirement(row: Mapping[str, Any]) -> tuple[Requirement, str]:
    """A requirement, checked, and the file that the gate takes."""
    checked = parse(row, "the requirement")
    content = {"requirements": [dict(row)]}
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=200)
    return (
        checked,
        f"# Written while looking at images of a run: check it on images that nobody has looked at.\n{text}",
    )


def gate(subject: Subject, condition: Condition) -> str:
    """Lines that check a requirement on images that nobody has looked at; which, the user knows."""
    run = shlex.join([*_run(subject, "NEW_IMAGES", str(condition)), "--out", "runs/new"])
    return f"{run}\nstormproof check runs/new --require requirements.yaml"


def _run(subject: Subject, data: str, conditions: str) -> list[str]:
    enhance = subject.run.record.model.enhance if subject.run is not None else ()
    enhanced = [word for name in enhance for word in ("--enhance", name)]
    model = subject.specs[0]
    return ["stormproof", "run", "--model", model, "--data", data, "--conditions", conditions, *enhanced]


def verdict(asked: Requirement, subject: Subject) -> str:
    """What the gate would say now of the run that is shown; empty if it cannot tell."""
    run, scores = subject.run, subject.scores
    if run is None or scores is None or asked.condition is None:
        return ""
    if asked.condition not in run.conditions:
        return f"{asked.condition} was not run, so {asked.metric} under it is not known."
    try:
        spent = spent_at(look_at(run, [asked], None), read_looks(run.folder), run.record.dataset.images)
        (judged,) = judge([asked], scores, look=spent)
    except StormproofError as error:
        return str(error)
    clean, here = scores.score(asked.metric), scores.score(asked.metric, asked.condition)
    told = f"{judged.text}. {asked.metric} clean {clean:.4f}, under {asked.condition} {here:.4f}."
    return f"{told} {spent.words}".strip()


def usual_measures(scores: Scores) -> list[str]:
    """The measures that a requirement may be about, the headline first."""
    known = measures()
    return [
        scores.headline,
        *(name for name in scores.per_condition if name in known and name != scores.headline),
    ]


def table(
    image: str, condition: str, truth: Sequence[Mapping[str, Any]], answers: Mapping[str, Mapping[str, Any]]
) -> str:
    """What is drawn, as CSV: a line per true object, per prediction, and per class of a label map."""
    nothing = (None,) * 3
    rows: list[tuple[Any, ...]] = [
        (image, condition, "", "truth", thing["name"], None, "" if thing["counted"] else "not counted",
         *thing["box"], *nothing)
        for thing in truth
    ]  # fmt: skip
    rows += [
        (image, condition, name, "prediction", thing["name"], thing["score"], thing["verdict"], *thing["box"],
         *nothing)
        for name, answer in answers.items()
        for thing in answer["found"]
    ]  # fmt: skip
    rows += [
        (image, condition, name, "map", label, None, "", *(None,) * 4, held["pixels"], held["wrong"],
         held["iou"])
        for name, answer in answers.items()
        for label, held in (answer.get("pixels") or {"classes": {}})["classes"].items()
    ]  # fmt: skip
    return as_csv(COLUMNS, rows)
