"""Tasks from plugins: counting objects, pointing at tips, judging edges. The package knows of none of them.

They are the code of docs/adding/task.md. Pointing has its own truth, column, metric, motion and drawing.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from helpers.plugins import POINTER, TIPPED, TIPS, read_block
from helpers.scenes import write_scene, write_street
from helpers.scored_models import MODELS
from helpers.typed import say
from stormproof.core.errors import InvalidPrediction, UnknownName
from stormproof.core.sample import Instances, Prediction
from stormproof.corruptions.geometry import move_points
from stormproof.corruptions.plugins import load_plugins
from stormproof.engine.config import make_config
from stormproof.engine.run import run as run_it
from stormproof.report import imagery
from stormproof.results.run import Run
from stormproof.results.store import parts
from stormproof.tools.drawing import draw

SNIPPET = read_block("task.md", r"^```python\n(.*?)^```$")
READING = """
from dataclasses import dataclass, replace

from stormproof.metrics.inputs import MetricInput


@dataclass(frozen=True, eq=False)
class Edges(MetricInput):
    table: object
    scored_names = ()
    kinds = ("edges",)

    def of_images(self, chosen):
        return replace(self, table=self.table[chosen])


def collect(reader):
    for text, table in reader.by_image("edges"):
        yield text, Edges(table)
"""
MEASURING = """
from stormproof.metrics.metric import Measure, Scored, metric, weighted_ratios
from stormproof.metrics.task import Task, task


@metric("edges", Measure("edge accuracy", "share of border pixels that are right", section="edges"))
def edge_accuracy(edges, weights):
    count, right = edges.table.T
    return Scored(weighted_ratios(weights, {"edge accuracy": (right, count)}))


task(
    Task("edges", 25, EDGES, headline="edge accuracy", per_class="edge accuracy", section="edges",
         fits=lambda given: "edges" in given.kinds,
         image_errors=lambda edges: 1 - edges.table[:, 1] / edges.table[:, 0],
         shown=lambda edges: edges.table[:, :0] > 0),
    __name__,
)
"""
MOVING = "elastic_transform@3[labels=moved]"


COUNTING = read_block("task.md", r"^## A task over boxes.*?^```python\n(.*?)^```$")
COUNTED = '''
from stormproof.core.table import Table
from stormproof.report.elements import Section
from stormproof.report.sections import section


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
    (tmp_path / "counting.py").write_text(COUNTING + COUNTED)
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


@pytest.fixture
def tips(tmp_path: Path) -> list[str]:
    for name, code in {"tips": TIPS, "vanes": TIPPED, "pointer": POINTER}.items():
        (tmp_path / f"{name}.py").write_text(code)
    files = [str(tmp_path / name) for name in ("tips.py", "vanes.py")]
    load_plugins(files)
    return files


def run_tips(folder: Path, plugins: list[str], **settings: object) -> Path:
    model = f"{Path(plugins[0]).with_name('pointer.py')}:point"
    usual = {"model": model, "data": "vanes:all", "plugin": plugins, "engine": "local", "chunk": 4,
             "conditions": ["contrast@2-3", MOVING]}  # fmt: skip
    run_it(make_config({**usual, "out": str(folder), **settings}))
    return folder


def test_a_task_with_its_own_column_is_stored_scored_and_shown(tmp_path: Path, tips: list[str]) -> None:
    folder = run_tips(tmp_path / "run", tips)
    flags = [word for file in tips for word in ("--plugin", file)]
    run = Run(folder)
    assert run.further == ("tips",)
    schema = pq.read_schema(run.parts[0])
    assert schema.names[-1] == "tips"
    predicted = run.predictions("clean")
    assert predicted["0.png"].data == {}
    np.testing.assert_array_equal(predicted["1.png"].data["tips"].shape, (2, 2))
    scores = run.score(interval=True)
    assert scores.headline == "tip error"
    assert scores.score("tip error") > 2.5  # one image of eight has none: twenty pixels
    assert scores.score("tip error", "contrast@3") > scores.score("tip error")
    interval = scores.interval("contrast@3")
    assert interval.low <= interval.estimate <= interval.high
    assert {*scores.per_class["tip error"]["clean"]} == {"cock", "arrow"}
    by_class = scores.replicates.per_class["tip error"]["contrast@3"]
    assert all(one.low <= one.estimate <= one.high for one in by_class.values())  # pixels, not shares
    assert "AP" in scores.per_condition  # its boxes are scored too
    assert "tip error" in say("score", folder, "--interval", *flags)
    page = tmp_path / "page.html"
    say("report", folder, "--out", page, "--images", "2", *flags)
    assert "Does it point?" in page.read_text(encoding="utf-8")


def test_arrays_of_a_plugin_move_with_the_pixels(tmp_path: Path, tips: list[str]) -> None:
    run = Run(run_tips(tmp_path / "run", tips, conditions=[MOVING]))
    clean, moved = (run.sample("3.png", text).truth.instances for text in ("clean", MOVING))
    assert clean is not None
    assert moved is not None
    assert np.abs(clean.data["tips"] - moved.data["tips"]).max() > 0.1
    still = np.zeros((48, 64), np.float32)
    np.testing.assert_allclose(move_points(clean.data["tips"], still, still), clean.data["tips"])


def test_an_array_of_objects_is_drawn(tips: list[str]) -> None:
    blank = np.zeros((48, 64, 3), np.uint8)
    boxes = [[20, 20, 40, 40]]
    plain = np.asarray(draw(blank, Prediction(boxes, [0.9], [0])))
    crossed = np.asarray(draw(blank, Prediction(boxes, [0.9], [0], data={"tips": [[30.0, 32.0]]})))
    ys, xs = np.nonzero((plain != crossed).any(axis=2))
    assert (xs.min(), xs.max(), ys.min(), ys.max()) == (27, 33, 29, 35)
    pointed = Prediction(boxes, [0.9], [0], data={"tips": [[30.0, 32.0]]})
    assert imagery.outline_object(pointed, 0, 0.5) == {"outline": "M13.5 16.0L16.5 16.0M15.0 14.5L15.0 17.5"}


def test_arrays_of_objects_are_checked(tips: list[str]) -> None:
    with pytest.raises(InvalidPrediction, match=r"tips have shape .* one entry for each of 1 boxes"):
        Prediction([[0, 0, 4, 4]], [0.5], [0], data={"tips": [[1.0, 2.0], [3.0, 4.0]]})
    with pytest.raises(UnknownName, match="tips"):
        Instances([[0, 0, 4, 4]], [0], data={"tipps": [[1.0, 2.0]]})
    with pytest.raises(InvalidPrediction, match="give it as semantic="):
        Prediction(data={"semantic": np.zeros((2, 2))})


def test_the_order_of_rows_does_not_decide_the_columns_of_a_part(
    tmp_path: Path, tips: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_tips(tmp_path / "whole", tips, conditions=["contrast@2"])
    several = tmp_path / "several"
    monkeypatch.setattr(parts, "_GROUP_ROWS", 1)  # the first group of rows has no tips
    run_tips(several, tips, conditions=["contrast@2"])
    assert pq.ParquetFile(Run(several).parts[0]).num_row_groups == 8
    for text in ("clean", "contrast@2"):
        one, two = (Run(folder).predictions(text) for folder in (whole, several))
        assert one.keys() == two.keys()
        for name, held in one.items():
            assert held.data.keys() == two[name].data.keys()
            for key, values in held.data.items():
                np.testing.assert_array_equal(values, two[name].data[key])


def test_adding_conditions_keeps_the_columns_of_stored_rows(tmp_path: Path, tips: list[str]) -> None:
    once = run_tips(tmp_path / "once", tips, conditions=["contrast@2"])
    before = Run(once).predictions("contrast@2")
    run_tips(once, tips, conditions=["contrast@2", "fog@1"])
    after = Run(once).predictions("contrast@2")
    np.testing.assert_array_equal(before["4.png"].data["tips"], after["4.png"].data["tips"])
    shutil.rmtree(once)


def test_a_number_counted_from_label_maps_has_an_interval(tmp_path: Path) -> None:
    plugin = tmp_path / "edges.py"
    plugin.write_text(READING + SNIPPET + MEASURING)
    folder, data = tmp_path / "run", write_street(tmp_path / "street")
    load_plugins([str(plugin)])
    run_it(make_config({"model": f"{MODELS}:thresholds", "data": data, "conditions": ["contrast@3"],
                        "plugin": [str(plugin)], "engine": "local", "out": str(folder)}))  # fmt: skip
    scores = Run(folder).score(interval=True)
    assert scores.headline == "mIoU"  # of lower rank
    assert 0 < scores.score("edge accuracy") <= 1
    interval = scores.interval("clean", "edge accuracy")
    assert interval.low <= scores.score("edge accuracy") <= interval.high
    unknowing = "edge accuracy"
    assert unknowing in say("score", folder, "--plugin", plugin, "--all", "--measure", unknowing)
