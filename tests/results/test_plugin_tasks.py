"""A task from a plugin: how many objects an image shows. Nothing in the package knows of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine.scenes import write_scene
from results.conftest import MODELS
from results.test_plugin_metrics import say
from stormproof.engine.config import make_config
from stormproof.engine.run import run as run_it
from stormproof.results.run import Run

COUNTING = '''
"""Counting: how far the number of boxes scored 0.5 or more is from the number of objects."""

import numpy as np

from stormproof.core.table import Table
from stormproof.metrics.metric import Measure, Scored, metric, weighted_ratios
from stormproof.metrics.task import Task, task
from stormproof.report.elements import Section
from stormproof.report.sections import section


def miscounts(objects):
    images = len(objects.truth.ids)
    shown = np.bincount(objects.truth.image[~objects.truth.excused], minlength=images)
    sure = objects.found.scores >= 0.5
    return np.abs(np.bincount(objects.found.image[sure], minlength=images) - shown).astype(float)


@metric("boxes", Measure("miscount", "objects too many or too few", section="objects", higher=False,
                         fraction=False))
def _miscount(objects, weights):
    return Scored(weighted_ratios(weights, {"miscount": (miscounts(objects), np.ones(weights.shape[1]))}))


task(
    Task("counting", 5, "objects", headline="miscount", per_class="AP", section="counting", truth="instances",
         truth_words="objects", fits=lambda given: "boxes" in given.kinds, image_errors=miscounts,
         shown=lambda objects: np.ones((len(objects.truth.ids), len(objects.truth.classes)), bool)),
    __name__,
)


@section(place=5)
def counting(scope):
    """How many objects each model miscounts."""
    rows = [(run.name, run.score("miscount")) for run in scope.runs if "miscount" in run]
    if not rows:
        return None
    table = Table("miscounts", "Objects too many or too few, clean", ("model", "miscount"), rows)
    return Section("counting", "Does it count?", "Boxes scored 0.5 or more.", tables=(table,))
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    (tmp_path / "counting.py").write_text(COUNTING)
    return tmp_path / "counting.py"


def test_a_task_of_a_file_is_reported_gated_and_shown(tmp_path: Path, plugin: Path) -> None:
    folder = tmp_path / "run"
    data = write_scene(tmp_path / "scene", images=8)
    run_it(make_config({"model": f"{MODELS}:sure_boxes", "data": data, "conditions": ["contrast@1-2"],
                        "engine": "local", "out": str(folder)}))  # fmt: skip
    assert Run(folder).score().headline == "AP"
    shown = say("score", folder, "--plugin", plugin, "--interval", "--all")
    assert "miscount" in shown
    scores = Run(folder).score(interval=True)
    assert scores.headline == "miscount"
    interval = scores.interval("contrast@2")
    assert interval.low <= interval.estimate <= interval.high
    errors = scores.image_errors
    assert errors is not None
    assert scores.score("miscount") == pytest.approx(np.mean(errors.by_condition["clean"]))
    page = tmp_path / "page.html"
    say("report", folder, "--plugin", plugin, "--out", page)
    assert "Does it count?" in page.read_text(encoding="utf-8")
    rows = json.loads(say("score", folder, "--plugin", plugin, "--json"))
    assert "miscount" in json.dumps(rows)
