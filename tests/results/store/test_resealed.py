"""Run folders whose digests fit and whose content does not: refused by the file's name, or made again."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuzz.sealed_targets import _sealed
from helpers.fake_models import MODELS
from helpers.scenes import write_scene
from stormproof.core.errors import OutputError, StoreError
from stormproof.engine.config import make_config
from stormproof.engine.run import run as run_it
from stormproof.report.sources import scores_of
from stormproof.results.run import Run
from stormproof.results.store.export import export_coco
from stormproof.results.store.integrity import problems
from stormproof.results.store.record import read_record
from stormproof.results.store.seal import write_sealed

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of boxes, masks and label maps with stored scores, and one that is an estimate."""
    from programs.torture import make_kept, make_runs

    folder = tmp_path_factory.mktemp("resealed")
    make_kept(folder / "kept")
    make_runs(folder / "plain")
    return folder


@pytest.fixture
def take(runs: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A copy of one of them."""

    def taken(name: str) -> Path:
        shutil.copytree(runs / name, tmp_path / "run")
        return tmp_path / "run"

    return taken


def change_part(run: Path, change: Callable[[Rows], None]) -> Path:
    path = sorted((run / "parts").iterdir())[0]
    table = pq.read_table(path)
    rows = table.to_pylist()
    change(rows)
    path.write_bytes(_sealed(pa.Table.from_pylist(rows, schema=table.schema)))
    return path


@dataclass(frozen=True)
class Put:
    """Other values in the first clean row that has objects or a label map."""

    values: dict[str, Any]

    def __call__(self, rows: Rows) -> None:
        row = next(r for r in rows if (r["scores"] or r["semantic_runs"]) and r["condition"] == "clean")
        row |= {name: value(row[name]) if callable(value) else value for name, value in self.values.items()}


def put(**values: Any) -> Put:
    return Put(values)


@pytest.mark.parametrize(
    ("of", "change", "complaint"),
    [
        ("boxes", put(index=-1), "negative"),
        ("boxes", put(height=0), "size of an image"),
        ("boxes", put(height=1 << 20, width=1 << 20), "size of an image"),
        ("boxes", put(scores=lambda held: held[:-1]), "differ in number"),
        ("boxes", put(labels=lambda held: [*held, 0]), "differ in number"),
        ("boxes", put(labels=lambda held: [99] * len(held)), "a label is out of range"),
        ("boxes", put(labels=lambda held: [-1] * len(held)), "a label is out of range"),
        ("boxes", put(labels=lambda held: [None] * len(held)), "lacks a value"),
        ("boxes", put(scores=lambda held: [float("nan")] * len(held)), "a score"),
        ("boxes", put(scores=lambda held: [1.5] * len(held)), "a score"),
        ("boxes", put(boxes=lambda held: [[9.0, 9.0, 1.0, 1.0]] * len(held)), "negative side"),
        ("boxes", put(boxes=lambda held: [[0.0, 0.0, float("inf"), 1.0]] * len(held)), "a box is not finite"),
        ("boxes", put(sides=lambda held: [[1.0, 1.0]] * 99), "differ in number"),
        ("boxes", put(image="another"), "it calls image"),
        ("boxes", put(condition="snow@3"), "which the run does not have|not in order"),
        ("masks", put(masks=lambda held: [[5]] * len(held)), "a mask and its image differ in size"),
        ("masks", put(masks=lambda held: held[:-1]), "differ in number"),
        ("maps", put(semantic_runs=lambda held: [1] * len(held)), "a label map has another size"),
        ("maps", put(semantic_values=lambda held: [65535] * len(held)), "a label is out of range"),
        ("maps", put(semantic_runs=None), "differ in number"),
        ("maps", put(confusion_truth=lambda held: [77] * len(held)), "a label is out of range"),
        ("maps", put(confusion_pixels=lambda held: [-5] * len(held)), "a number of pixels"),
        ("maps", put(confusion_predicted=lambda held: held[:-1]), "differ in number"),
    ],
)
def test_a_part_that_no_run_wrote_is_named(
    take: Callable[[str], Path], of: str, change: Put, complaint: str
) -> None:
    run = take(f"plain/{of}")
    path = change_part(run, change)
    (found,) = problems(Run(run), deep=True)
    assert re.search(complaint, str(found))
    assert str(path) in str(found)
    if any(name.startswith("semantic") for name in change.values):
        with pytest.raises(StoreError, match=complaint):  # scores follow from confusions alone
            Run(run).predictions("clean")
        return
    with pytest.raises(StoreError, match=complaint) as caught:
        Run(run).score()
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("times", [[-1.0], [float("nan")], [], [1.0, 2.0]])
def test_a_time_that_no_run_wrote_is_named(tmp_path: Path, times: list[float]) -> None:
    settings = {"model": f"{MODELS}:brightness_boxes", "data": write_scene(tmp_path / "scene", images=2),
                "conditions": ["fog@2"], "engine": "local", "batch": 1, "timed": True}  # fmt: skip
    run_it(make_config({**settings, "out": str(tmp_path / "run")}))
    change_part(tmp_path / "run", lambda rows: rows[-1].update(model_ms=times))
    (problem,) = problems(Run(tmp_path / "run"), deep=True)
    assert "the time of an image is out of range" in str(problem)
    with pytest.raises(StoreError, match="the time of an image is out of range"):
        Run(tmp_path / "run").score()


def test_exports_read_checked_parts(take: Callable[[str], Path], tmp_path: Path) -> None:
    run = take("plain/boxes")
    change_part(run, put(labels=lambda held: [99] * len(held)))
    with pytest.raises(StoreError, match=r"part-000000.*out of range"):
        export_coco(Run(run), ["clean"], tmp_path / "out")


@pytest.mark.parametrize("how", ["dropped", "renamed", "typed"])
def test_a_part_with_other_columns_is_named(take: Callable[[str], Path], how: str) -> None:
    run = take("plain/boxes")
    path = sorted((run / "parts").iterdir())[0]
    table = pq.read_table(path)
    at = table.column_names.index("masks")
    other = {
        "dropped": lambda: table.drop_columns(["masks"]),
        "renamed": lambda: table.rename_columns([n if n != "masks" else "index" for n in table.column_names]),
        "typed": lambda: table.set_column(at, "masks", pa.nulls(len(table), pa.string())),
    }[how]()
    path.write_bytes(_sealed(other.replace_schema_metadata(table.schema.metadata)))
    with pytest.raises(StoreError, match="its columns are not those of a part") as caught:
        Run(run).score()
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "declared",
    [
        3, [], {"storm": 3}, {"storm": {}}, {"storm": {"family": None}}, {"storm": None},
        {"storm": {"family": "a", "cite": "b", "version": "x", "doc": "", "parameters": 3, "labels": [],
                   "moves": {}, "needs": 1}},
    ],
)  # fmt: skip
def test_refuses_malformed_declarations_of_corruptions(take: Callable[[str], Path], declared: Any) -> None:
    run = take("plain/boxes")
    content = json.loads((run / "run.json").read_text())
    del content["digest"]
    write_sealed(run / "run.json", {**content, "declared": declared})
    with pytest.raises(StoreError, match=r"run\.json cannot be read: declared"):
        Run(run).score()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("chunk", 0), ("images", -1), ("images", 10**12), ("conditions", ["clean", "@@"]), ("quota", 0),
        ("conditions", ["clean", "fog@3 "]), ("recipes", {"fog": "x"}), ("tags", {"a": 1}), ("seed", None),
    ],
)  # fmt: skip
def test_a_record_out_of_range_is_refused_by_field(
    take: Callable[[str], Path], name: str, value: Any
) -> None:
    run = take("plain/boxes")
    content = json.loads((run / "run.json").read_text())
    del content["digest"]
    write_sealed(run / "run.json", {**content, name: value})
    with pytest.raises(StoreError, match=rf"run\.json cannot be read: {name}"):
        read_record(run)


def kept(run: Path, ending: str) -> Path:
    (path,) = (p for p in (run / "scores").iterdir() if p.name.endswith(ending))
    return path


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cells", {}), ("cells", {"AP": {"clean": "x"}}), ("cells", {"AP": 3}), ("classes", 3),
        ("cells", {"no such": {"clean": 1.0}}), ("cells", {"AP": {"snow@5": 0.3}}), ("per_class", []),
        ("quality", {"clean": 3}), ("roc", {"clean": {"fppi": [1]}}), ("image_errors", None),
        ("lost", {"clean": [{"id": 3}]}),
    ],
)  # fmt: skip
def test_stored_scores_of_another_shape_are_recomputed(
    take: Callable[[str], Path], name: str, value: Any
) -> None:
    run = take("kept/boxes")
    right = repr(Run(run).score(partial=True).per_condition)
    path = kept(run, ".json")
    content = json.loads(path.read_text())
    del content["digest"]
    write_sealed(path, {**content, name: value})
    assert repr(Run(run).score(partial=True).per_condition) == right
    assert json.loads(path.read_text())["cells"] == content["cells"]


@pytest.mark.parametrize("ending", ["-images.parquet", "-50.parquet"])
@pytest.mark.parametrize("how", ["columns", "rows", "nulls", "types"])
def test_stored_tables_of_another_shape_are_recomputed(
    take: Callable[[str], Path], ending: str, how: str
) -> None:
    run = take("kept/boxes")
    right = Run(run).score(partial=True, replicates=50)
    path = kept(run, ending)
    table, before = pq.read_table(path), path.read_bytes()
    name = table.column_names[-1]
    other = {
        "columns": lambda: table.drop_columns([name]),
        "rows": lambda: table.slice(1),
        "nulls": lambda: table.set_column(0, table.column_names[0], pa.nulls(len(table), pa.string())),
        "types": lambda: table.set_column(2, name, pa.nulls(len(table), pa.bool_())),
    }[how]()
    path.write_bytes(_sealed(other))
    again = Run(run).score(partial=True, replicates=50)
    assert repr(again.per_condition) == repr(right.per_condition)
    assert again.interval("P", "AP") == right.interval("P", "AP")
    assert path.read_bytes() == before


@pytest.mark.parametrize(("name", "value"), [("mpc", 3), ("inferences", "x"), ("measure", None), ("more", 1)])
def test_an_estimate_of_another_shape_is_named(take: Callable[[str], Path], name: str, value: Any) -> None:
    run = take("kept/part")
    content = json.loads((run / "estimate.json").read_text())
    del content["digest"]
    write_sealed(run / "estimate.json", {**content, name: value})
    with pytest.raises(StoreError, match=rf"estimate\.json is damaged: {name}"):
        scores_of(str(run))


def test_an_estimate_of_another_state_of_the_run_is_refused(take: Callable[[str], Path]) -> None:
    run = take("kept/part")
    assert scores_of(str(run))[0].estimate is not None
    record = json.loads((run / "run.json").read_text())
    del record["digest"]
    write_sealed(run / "run.json", {**record, "tags": {"added": "later"}})
    with pytest.raises(StoreError, match=r"estimate\.json is out of date: .*stormproof score"):
        scores_of(str(run))


def test_scores_are_not_written_through_a_link(take: Callable[[str], Path], tmp_path: Path) -> None:
    run = take("plain/boxes")
    shutil.rmtree(run / "scores", ignore_errors=True)
    (tmp_path / "elsewhere").mkdir()
    (run / "scores").symlink_to(tmp_path / "elsewhere")
    assert "it is a link" in " ".join(Run(run).score().notices)
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("what", ["coco", "truth"])
def test_an_export_folder_that_is_a_link_is_not_followed(
    take: Callable[[str], Path], tmp_path: Path, what: str
) -> None:
    from typer.testing import CliRunner

    from stormproof.cli import app

    run = take("plain/boxes")
    (tmp_path / "elsewhere").mkdir()
    (run / f"export-{what}").symlink_to(tmp_path / "elsewhere")
    words = ["export", str(run), *(["--truth"] if what == "truth" else [])]
    found = CliRunner().invoke(app, words).exception
    assert isinstance(found, OutputError)
    assert "it is a link" in str(found)
    assert not list((tmp_path / "elsewhere").iterdir())
