"""Run folders that somebody sealed again: their digests fit, what they hold is anything."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fuzz.dataset_targets import lay, quietly
from fuzz.mutate import json_bytes, tree
from stormproof.core.errors import StormproofError
from stormproof.results.store.seal import seal, with_digest

_RENAMES = ("", "boxes", "x\x1b[2J", "index")


@lru_cache(maxsize=1)
def finished_runs() -> dict[str, dict[str, bytes]]:
    """Runs with everything that is kept in them: scores, intervals, an estimate, records of failures."""
    from programs.torture import make_kept, make_runs

    root = Path(tempfile.mkdtemp())
    runs = [*make_kept(root / "kept"), *make_runs(root / "plain")]
    return {
        str(run): {
            str(path.relative_to(run)): path.read_bytes()
            for path in sorted(run.rglob("*"))
            if path.is_file() and not path.name.startswith(".")
        }
        for run in runs
    }


def sealed_again(dice: random.Random, folder: Path) -> None:
    """One file of a run changed and sealed again, then two of the ways to read the run."""
    from stormproof.report.sources import scores_of
    from stormproof.results.estimate import estimate_run
    from stormproof.results.evidence import pixel_manifest
    from stormproof.results.run import Run
    from stormproof.results.store.export import export_coco, export_png, export_truth
    from stormproof.results.store.integrity import problems
    from stormproof.results.worst import worst_images

    files = finished_runs()[dice.choice([*finished_runs()])]
    name = dice.choice([name for name in files if name != "run.yaml"])
    lay({**files, name: reseal(name, files[name], dice)}, folder / "run")
    run = Run(folder / "run")

    def export() -> None:
        quietly(lambda: export_coco(run, ["clean"], folder / "coco"))
        quietly(lambda: export_png(run, ["clean"], folder / "png"))
        export_truth(run, folder / "truth")

    readers: tuple[Callable[[], object], ...] = (
        lambda: list(problems(run, deep=True)),
        lambda: scores_of(str(folder / "run"), interval=dice.random() < 0.1),
        lambda: run.score(partial=True, replicates=50),
        lambda: worst_images(run.score(partial=True), 3),
        lambda: run.predictions("clean"),
        lambda: pixel_manifest(run, images=1),
        lambda: run.record.quota is None or estimate_run(run, replicates=50),
        export,
    )
    for read in dice.sample(readers, 2):
        quietly(read)


def reseal(name: str, content: bytes, dice: random.Random) -> bytes:
    """A file of a run with other content, and a seal that fits it."""
    if name.endswith(".json"):
        held = {key: value for key, value in json.loads(content).items() if key != "digest"}
        changed = tree(held, dice)
        return json_bytes(_digested(changed) if isinstance(changed, dict) else changed)
    for _ in range(5):
        try:
            return _sealed(_other_table(pq.read_table(BytesIO(content)), dice))
        except (pa.ArrowException, TypeError, ValueError, OverflowError, KeyError, AttributeError):
            continue  # no table can hold this
    return content


def _digested(content: dict[str, Any]) -> dict[str, Any]:
    try:
        return with_digest(content)
    except UnicodeEncodeError:  # a lone half of a character
        return content


def _sealed(table: pa.Table) -> bytes:
    file = BytesIO()
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)
    seal(file)
    return file.getvalue()


def _other_table(table: pa.Table, dice: random.Random) -> pa.Table:
    """Columns dropped, renamed, emptied or of another type; rows dropped, doubled, moved or with other
    values."""
    what, at = dice.random(), dice.randrange(table.num_columns)
    name, metadata = table.column_names[at], table.schema.metadata
    if what < 0.05:
        return table.drop_columns([name])
    if what < 0.1:
        names = [dice.choice(_RENAMES) if n == name else n for n in table.column_names]
        return table.rename_columns(names).replace_schema_metadata(metadata)
    if what < 0.15:
        return table.set_column(at, name, pa.nulls(len(table), table.schema.types[at]))
    if what < 0.2:
        kind = dice.choice((pa.string(), pa.int64(), pa.float32(), pa.binary(), pa.list_(pa.string())))
        return table.set_column(at, name, pa.nulls(len(table), kind))
    if what < 0.3:
        order = list(range(len(table)))
        dice.shuffle(order)
        return table.take(order[: dice.randrange(len(order) + 1)])
    if what < 0.35:
        return pa.concat_tables([table, table.slice(0, 2)])
    rows = table.to_pylist()
    row = dice.randrange(len(rows))
    rows[row] = tree(rows[row], dice)
    if what < 0.9:
        return pa.Table.from_pylist(rows, schema=table.schema)
    return pa.Table.from_pylist(rows).replace_schema_metadata(metadata)


def evidence(dice: random.Random, folder: Path) -> None:
    """Evidence about a run, changed, beside the run as it is."""
    from stormproof.results.evidence import check_evidence, read_evidence
    from stormproof.results.run import Run

    run, content = _attested()
    path = folder / "evidence.json"
    path.write_bytes(json_bytes(tree(json.loads(content), dice)))
    check_evidence(read_evidence(path), Run(run))


@lru_cache(maxsize=1)
def _attested() -> tuple[Path, bytes]:
    """A run, and evidence about it."""
    from programs.torture import make_runs
    from stormproof.results.evidence import statement
    from stormproof.results.requirements import read_requirements
    from stormproof.results.run import Run
    from stormproof.results.verdicts import check_run

    root = Path(tempfile.mkdtemp())
    run, require = Run(make_runs(root)[0]), root / "requirements.yaml"
    require.write_text("requirements:\n  - {id: R1, metric: AP, condition: clean, at_least: 0.1}\n")
    verdicts = check_run(run, read_requirements(require), replicates=50)
    return run.folder, json_bytes(statement(run, require, verdicts, pixels=1, replicates=50))


def submission(dice: random.Random, folder: Path) -> None:
    """A submission with other content and a digest that fits it, as a leaderboard reads it."""
    from stormproof.report.leaderboard.site import build_site, read_folder
    from stormproof.report.leaderboard.submission import digest

    changed = tree(_entry(), dice)
    if isinstance(changed, dict):
        try:
            changed["digest"] = digest(changed)
        except (UnicodeEncodeError, TypeError, ValueError):
            changed["digest"] = "0"
    (folder / "in").mkdir()
    (folder / "in" / "a.json").write_bytes(json_bytes(changed))
    entries = read_folder(folder / "in")
    if dice.random() < 0.2:
        build_site(entries, folder / "site")


@lru_cache(maxsize=1)
def _entry() -> dict[str, Any]:
    from stormproof.report.leaderboard.submission import as_json, submission_of
    from stormproof.report.page import charting
    from stormproof.results.run import Run

    charting()  # bundled once, which takes seconds
    for run, files in finished_runs().items():
        if "parts/part-000000.parquet" in files:
            try:
                found = json.loads(as_json(submission_of(Run(run))))
            except StormproofError:
                continue
            check = {"conditions": ["clean"], "largest_difference": 0.0, "tolerance": 0.001}
            return {**found, "verification": {**check, "date": "2026-01-01", "stormproof": "0.1.0"}}
    raise AssertionError("no run could be submitted")
