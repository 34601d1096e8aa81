"""Rows on disk: what goes in comes out, with our reader and with anyone's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from stormproof.core.condition import Condition
from stormproof.core.errors import OutputError, StoreError
from stormproof.core.files import sweep, whole_file
from stormproof.core.forms import Comparison
from stormproof.core.prediction_batch import join_boxes
from stormproof.core.sample import RLE, Prediction, SemanticMap, Truth
from stormproof.metrics.semantic import LABEL_MAPS, count_pixels
from stormproof.results.store.merge import merge
from stormproof.results.store.parts import (
    PARTS,
    failures_path,
    held_cells,
    held_rows,
    open_part,
    part_path,
    read_failures,
    write_failures,
    writing_part,
)
from stormproof.results.store.record import DatasetRecord, ModelRecord, RunRecord, claim, read_record
from stormproof.results.store.schema import Row, RowBlock, RowHead, elements, prediction_of, table_of
from stormproof.results.store.seal import seal

SIZE = (4, 6)
FOG, CLEAN = Condition.parse("fog@3"), Condition()


def detection(count: int, masks: bool = False) -> Prediction:
    rng = np.random.default_rng(count)
    low = rng.uniform(0, 3, (count, 2))
    shapes = tuple(RLE.from_mask(rng.random(SIZE) > 0.5) for _ in range(count))
    boxes = np.concatenate([low, low + 1], axis=1)
    return Prediction(boxes, rng.random(count), rng.integers(0, 9, count), shapes if masks else None)


def row(index: int, condition: Condition, said: Prediction) -> Row:
    return Row.of(index, f"im{index}", condition, int(not condition.is_clean), SIZE, said)


@pytest.mark.parametrize(
    "said", [detection(0), detection(3), detection(2, masks=True), detection(0, masks=True)]
)
def test_detections_survive_a_round_trip(said: Prediction) -> None:
    back = prediction_of(table_of([row(0, FOG, detection(5)), row(1, FOG, said)]).to_pylist()[1])
    for name in ("boxes", "scores", "labels"):
        np.testing.assert_array_equal(getattr(back, name), getattr(said, name))
    assert (back.masks is None) == (said.masks is None)
    for one, two in zip(back.masks or (), said.masks or (), strict=True):
        np.testing.assert_array_equal(one.to_mask(), two.to_mask())


@pytest.mark.parametrize("largest", [1 << 20, 40], ids=["by rows", "by boxes"])
def test_a_block_of_rows_equals_single_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    monkeypatch.setattr("stormproof.results.store.parts._GROUP_ROWS", 16)
    monkeypatch.setattr("stormproof.results.store.parts._GROUP_ELEMENTS", largest)
    said = [detection(count % 11) for count in range(60)]
    heads = [RowHead(i // 2, f"im{i // 2}", (CLEAN, FOG)[i % 2], i % 2, SIZE, "9:a", None) for i in range(60)]
    joined = join_boxes(*([getattr(one, name) for one in said] for name in ("boxes", "scores", "labels")))
    assert joined is not None
    halves = [RowBlock(heads[start::2], joined.take(np.arange(start, 60, 2))) for start in (1, 0)]
    whole = RowBlock.in_order(halves)
    for one, prediction in zip(whole, said, strict=True):
        np.testing.assert_array_equal(one.boxes, prediction.boxes)
    paths = [tmp_path / name for name in ("rows", "blocks")]
    with writing_part(paths[0], "key") as part:
        for one in whole:
            part.add(one)
    with writing_part(paths[1], "key") as part:
        part.add(next(iter(whole)))
        part.add_block(whole.part(1, 9))
        part.add_block(whole.part(9, 60))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert [one.cell for one in whole] == [head.cell for head in heads]
    assert pq.ParquetFile(paths[0]).num_row_groups > 3


def test_label_maps_and_confusions_survive_a_round_trip() -> None:
    labels = np.random.default_rng(0).integers(0, 3, SIZE).astype(np.uint8)
    truth = SemanticMap(np.roll(labels, 1, axis=0))
    counts, predicted = count_pixels(truth, labels, classes=3), Prediction(semantic=labels)
    assert LABEL_MAPS.derive is not None
    derived = LABEL_MAPS.derive(Comparison("a", Truth(semantic=truth), predicted, 3, np.arange(3)))
    table = table_of([Row.of(0, "a", CLEAN, 0, SIZE, predicted, derived)])
    entry = table.to_pylist()[0]
    back = prediction_of(entry).semantic
    assert back is not None
    np.testing.assert_array_equal(back, labels)
    dense = np.zeros((3, 3), np.int64)
    dense[entry["confusion_truth"], entry["confusion_predicted"]] = entry["confusion_pixels"]
    np.testing.assert_array_equal(dense, counts)


def test_an_empty_prediction_differs_from_a_missing_one() -> None:
    entry = table_of([row(0, CLEAN, Prediction())]).to_pylist()[0]
    assert entry["boxes"] == []
    assert entry["masks"] is None
    assert entry["semantic_runs"] is None
    assert (entry["corruption"], entry["severity"]) == (None, None)


def write(path: Path, rows: list[Row], key: str = "k") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing_part(path, key) as part:
        for entry in rows:
            part.add(entry)


def test_a_part_finds_its_rows(tmp_path: Path) -> None:
    path = part_path(tmp_path, 0)
    rows = [row(0, FOG, detection(1)), row(1, CLEAN, detection(3)), row(1, FOG, detection(2))]
    write(path, rows)
    cells = [(0, "fog@3"), (1, "clean"), (1, "fog@3")]
    assert held_cells(path, "k") == cells
    found = list(held_rows(path, "k"))
    assert [cell for cell, _ in found] == cells
    assert [len(entry["scores"][0]) for _, entry in found] == [1, 3, 2]


def test_many_rows_make_several_groups(tmp_path: Path) -> None:
    path = part_path(tmp_path, 0)
    write(path, [row(i, Condition.of("fog", s), detection(1)) for i in range(300) for s in (1, 2, 3)])
    assert pq.ParquetFile(path).num_row_groups == 2
    assert pq.read_table(path).num_rows == 900


def test_large_answers_are_not_kept_in_memory(tmp_path: Path) -> None:
    """A label map, or masks, of many runs close a row group however few the rows."""
    noise = np.random.default_rng(0).integers(0, 2, (1024, 1536)).astype(np.uint8)
    masks = tuple(RLE.from_mask(noise[:512, :700]) for _ in range(4))
    boxes, ones = np.array([[0.0, 0, 1, 1]] * 4), np.ones(4)
    for size, said in (
        (noise.shape, Prediction(semantic=noise)),
        ((512, 700), Prediction(boxes, ones, ones.astype(int), masks)),
    ):
        path = part_path(tmp_path, said.semantic is None)
        write(path, [Row.of(i, "a", FOG, 1, size, said) for i in range(6)])
        assert pq.ParquetFile(path).num_row_groups >= 2


@pytest.mark.parametrize("again", [(), (0,), (1, 3), (0, 1, 2, 3)])
def test_rows_written_again_give_the_same_file(tmp_path: Path, again: tuple[int, ...]) -> None:
    """Whichever rows come from an earlier file, counted by its columns and not by their own."""
    labels = np.random.default_rng(1).integers(0, 2, SIZE).astype(np.uint8)
    said = [detection(2, masks=True), detection(0), Prediction(semantic=labels), detection(3, masks=True)]
    rows = [row(i, FOG, answer) for i, answer in enumerate(said)]
    first, second = part_path(tmp_path, 0), part_path(tmp_path, 1)
    write(first, rows)
    held = dict(held_rows(first, "k"))
    with writing_part(second, "k") as part:
        for entry in rows:
            part.add(held[entry.cell] if entry.index in again else entry)
    assert first.read_bytes() == second.read_bytes()
    assert [elements(table) for table in held.values()] == [entry.elements for entry in rows]


def test_a_part_of_another_run_is_refused(tmp_path: Path) -> None:
    path = part_path(tmp_path, 0)
    write(path, [row(0, FOG, detection(1))], key="mine")
    with pytest.raises(StoreError, match="belongs to another run"):
        open_part(path, "yours")
    pq.write_table(table_of([row(0, FOG, detection(1))]), path)
    with path.open("r+b") as file:
        seal(file)
    with pytest.raises(StoreError, match="has schema none, this version reads 2"):
        open_part(path, "mine")


def test_a_write_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), whole_file(tmp_path / "a") as file:
        file.write(b"half" * (1 // 0))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".a.0123456789ab.tmp").touch()
    sweep(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []
    words = "No such file or directory; check that the folder exists"
    with pytest.raises(OutputError, match=words), whole_file(tmp_path / "no" / "a"):
        pass


def record(**changes: object) -> RunRecord:
    return RunRecord(
        model=ModelRecord(spec="m", name="m", fingerprint="f1"),
        dataset=DatasetRecord(spec="d", name="d", fingerprint="f2", images=4),
        seed=0, chunk=2, images=4, conditions=("clean", "fog@3"), recipes={"fog": 1},
    ).model_copy(update=changes)  # fmt: skip


def test_shards_that_overlap_are_joined(tmp_path: Path) -> None:
    shards = [tmp_path / "a", tmp_path / "b"]
    kept = record()
    for shard in shards:
        claim(shard, kept)
    rows = {(i, c): row(i, c, detection(i + 1)) for i in range(4) for c in (CLEAN, FOG)}
    write(part_path(shards[0], 0), [rows[0, CLEAN], rows[0, FOG], rows[1, CLEAN]], kept.key)
    write(part_path(shards[1], 0), [rows[1, CLEAN], rows[1, FOG]], kept.key)
    write(part_path(shards[1], 1), [rows[2, CLEAN]], kept.key)
    merge(tmp_path / "all", shards)
    whole = tmp_path / "whole" / PARTS / "part-000000.parquet"
    write(whole, [rows[i, c] for i in (0, 1) for c in (CLEAN, FOG)], kept.key)
    assert (tmp_path / "all" / PARTS / "part-000000.parquet").read_bytes() == whole.read_bytes()
    assert held_cells(part_path(tmp_path / "all", 1), kept.key) == [(2, "clean")]


def test_failures_of_another_run_are_refused(tmp_path: Path) -> None:
    path = failures_path(tmp_path, 0)
    path.parent.mkdir()
    failed = {"index": 0, "image": "a", "condition": "clean", "kind": "image", "error": "x", "trace": ""}
    write_failures(path, [failed], "theirs")
    with pytest.raises(StoreError, match="belongs to another run"):
        read_failures(tmp_path, "mine")
    assert read_failures(tmp_path, "theirs") == [failed]
    write_failures(path, [failed])  # as earlier versions did
    assert read_failures(tmp_path, "mine") == [failed]


def test_failures_of_all_shards_are_kept(tmp_path: Path) -> None:
    shards = [tmp_path / "a", tmp_path / "b"]
    for shard, text in zip(shards, ("clean", "fog@3"), strict=True):
        claim(shard, record())
        told = [
            {"index": i, "image": f"im{i}", "condition": text, "kind": "model", "error": "no"} for i in (0, 1)
        ]
        write_failures(failures_path(shard, 0), told)
    write(part_path(shards[1], 0), [row(0, CLEAN, detection(1))], record().key)
    for _ in range(2):
        merge(tmp_path / "all", shards)
        kept = [(f["index"], f["condition"]) for f in read_failures(tmp_path / "all")]
        assert kept == [(0, "fog@3"), (1, "clean"), (1, "fog@3")]


def test_shards_of_different_runs_are_not_joined(tmp_path: Path) -> None:
    claim(tmp_path / "a", record())
    claim(tmp_path / "b", record(seed=7))
    with pytest.raises(StoreError, match=r"b is not a shard of the run in .*: the seed was 0, now 7"):
        merge(tmp_path / "all", [tmp_path / "a", tmp_path / "b"])
    with pytest.raises(StoreError, match="nowhere is not a run folder"):
        merge(tmp_path / "all", [tmp_path / "a", tmp_path / "nowhere"])
    assert not (tmp_path / "all").exists()
    with pytest.raises(StoreError, match="one of the shards"):
        merge(tmp_path / "a", [tmp_path / "a"])


def test_reports_a_record_of_another_version(tmp_path: Path) -> None:
    claim(tmp_path / "a", record())
    assert read_record(tmp_path / "a") == record()
    with pytest.raises(StoreError, match=r"is not a run folder: it has no run.json"):
        read_record(tmp_path)
    (tmp_path / "a" / "run.json").write_text(json.dumps({"schema_version": 1}))
    with pytest.raises(StoreError, match="written by another version"):
        read_record(tmp_path / "a")


def test_pandas_can_read_the_rows(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not a dependency")
    path = part_path(tmp_path, 0)
    write(path, [row(0, FOG, detection(2, masks=True)), row(0, CLEAN, detection(3, masks=True))])
    frame = pandas.read_parquet(tmp_path / PARTS)
    assert frame.groupby("condition")["scores"].first().map(len).to_dict() == {"clean": 3, "fog@3": 2}


def test_sql_can_read_the_rows(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not a dependency")
    path = part_path(tmp_path, 0)
    write(path, [row(0, FOG, detection(2)), row(0, CLEAN, detection(3))])
    query = f"select condition, len(boxes), list_sum(scores) from '{tmp_path}/parts/*.parquet' order by 1"
    found = duckdb.sql(query).fetchall()
    assert [(name, count) for name, count, _ in found] == [("clean", 3), ("fog@3", 2)]
    assert found[0][2] == pytest.approx(detection(3).scores.sum())
