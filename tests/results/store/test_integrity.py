"""A stored number is never silently wrong: damage is refused, by name, with the way out."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from helpers.fake_models import MODELS
from helpers.scenes import write_scene
from programs import torture
from stormproof.cli import app
from stormproof.core.errors import InvalidOption, RunError, StoreError
from stormproof.core.imagefile import read_image, write_image
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.results.run import Run
from stormproof.results.store.integrity import check_parts
from stormproof.results.store.merge import merge
from stormproof.results.store.parts import held_rows, part_path, read_failures, writing_part
from stormproof.results.store.record import claim, claiming, read_record
from stormproof.results.store.seal import is_sealed, json_digest, seal


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A small run, alone with its dataset."""
    spec = write_scene(tmp_path / "scene", images=6)
    settings = {"model": f"{MODELS}:brightness_boxes", "data": spec, "conditions": ["fog@2"],
                "engine": "local", "chunk": 2, "out": str(tmp_path / "run")}  # fmt: skip
    run(make_config(settings))
    return tmp_path / "run"


def again(run_folder: Path, **changes: object) -> None:
    import yaml

    run(make_config(yaml.safe_load((run_folder / "run.yaml").read_text()) | changes))


def test_flipped_bits_are_noticed(tmp_path: Path) -> None:
    outcomes = {outcome for outcome, _ in torture.flips(40, seed=3, folder=tmp_path)}
    assert outcomes <= {"refused", "same score"}
    assert "refused" in outcomes


def test_flipped_bits_in_files_of_a_report_are_noticed(tmp_path: Path) -> None:
    outcomes = {outcome for outcome, _ in torture.flips(25, seed=3, folder=tmp_path, kept=True)}
    assert outcomes == {"refused", "same score"}


def test_every_bit_of_the_end_of_a_part_is_covered(made: Path) -> None:
    """The seal itself, the footer's length and Parquet's mark are no part of the digest's message."""
    path = part_path(made, 0)
    content = path.read_bytes()
    for back in range(1, 40):
        for bit in range(8):
            at = len(content) - back
            path.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
            with pytest.raises(StoreError, match=r"part-000000.parquet is damaged"):
                check_parts(Run(made))
    path.write_bytes(content)
    check_parts(Run(made))


def test_the_seal_covers_the_bytes_after_it(made: Path) -> None:
    """By itself, whether or not Parquet would stumble over the same byte."""
    path = part_path(made, 0)
    content = path.read_bytes()
    assert is_sealed(path) is True
    for at in range(len(content) - 8, len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert is_sealed(path) is False


def test_refuses_a_part_copied_over_another(made: Path) -> None:
    shutil.copy(part_path(made, 1), part_path(made, 2))
    with pytest.raises(
        StoreError, match=r"part-000002.parquet is damaged: it holds image 2.* rm .*000002"
    ) as error:
        Run(made).score()
    part_path(made, 2).unlink()  # as the message says
    assert "run --config" in str(error.value)
    again(made)
    Run(made).score()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image": ["9", "9", "2", "2"]}, "it calls image 0 '9', the dataset '1'"),
        ({"index": [0, 0, 7, 7]}, "it holds image 7, which belongs in another part"),
        ({"index": [0, 0, 0, 0]}, "its cells are not in order, or occur twice"),
        ({"recipe": [0, 5, 0, 5]}, "was made by version 5 of its recipe"),
    ],
)
def test_refuses_rows_that_do_not_belong_to_their_part(
    made: Path, change: dict[str, list[object]], words: str
) -> None:
    """Sealed again, as by a program that went wrong."""
    path, key = part_path(made, 0), read_record(made).key
    rows = [table for _, table in held_rows(path, key)]
    with writing_part(path, key) as part:
        for k, row in enumerate(rows):
            for name, values in change.items():
                at = row.schema.get_field_index(name)
                row = row.set_column(
                    at, row.schema.field(at), pa.array([values[k]], row.schema.field(at).type)
                )
            part.add(row)
    with pytest.raises(StoreError) as error:
        Run(made).score()
    assert words in str(error.value)
    shown = CliRunner().invoke(app, ["verify", str(made)])
    assert shown.exit_code == 1
    assert "part-000000.parquet" in shown.stderr
    if "image" not in change:  # names are compared with the dataset, which merging does not open
        with pytest.raises(StoreError):
            merge(made.with_name("joined"), [made])


def test_a_label_out_of_range_is_refused(made: Path) -> None:
    path, key = part_path(made, 0), read_record(made).key
    rows = [table for _, table in held_rows(path, key)]
    with writing_part(path, key) as part:
        for row in rows:
            at = row.schema.get_field_index("labels")
            part.add(
                row.set_column(at, row.schema.field(at), pa.array([[0, 1, 77]], row.schema.field(at).type))
            )
    with pytest.raises(StoreError, match="label is out of range"):
        Run(made).score()
    shown = CliRunner().invoke(app, ["verify", str(made)])
    assert "a label is out of range (there are 2 classes)" in shown.stderr


def test_a_whole_folder_is_verified(made: Path) -> None:
    shown = CliRunner().invoke(app, ["verify", str(made)])
    assert (shown.exit_code, shown.stdout) == (0, f"{made}: 3 parts checked, all as they were written.\n")
    assert is_sealed(part_path(made, 0)) is True
    assert pq.read_table(part_path(made, 0)).num_rows == 4  # anyone's reader passes over the seal


def test_a_changed_record_is_refused_and_written_anew(made: Path) -> None:
    path = made / "run.json"
    record, before = json.loads(path.read_text()), torture.scored(made)
    path.write_text(json.dumps(record | {"images": 5}))
    with pytest.raises(StoreError, match=r"run.json is damaged: .* rm .*run.json && stormproof run --config"):
        Run(made).score()
    path.unlink()
    again(made)
    assert torture.scored(made) == before


def test_a_folder_of_another_version_is_refused_in_one_sentence(made: Path) -> None:
    """By its record, or by its parts where the record was copied from elsewhere."""
    path = made / "run.json"
    record = json.loads(path.read_text())
    older = {name: value for name, value in record.items() if name != "digest"} | {"schema_version": 1}
    for content in (older, older | {"digest": json_digest(older)}, older | {"sealed": True}):
        path.write_text(json.dumps(content))
        for act in (lambda: Run(made).score(), lambda: again(made), lambda: merge(made / "all", [made])):
            with pytest.raises(StoreError) as error:
                act()
            assert str(error.value) == (
                f"{path} was written by another version of Stormproof (schema 1; this one reads 2). "
                "Use that version, or run again into a new folder."
            )
    path.write_text(json.dumps(record))
    part = part_path(made, 0)
    table = pq.read_table(part)
    tag = json.loads(table.schema.metadata[b"stormproof"]) | {"schema": 1}
    pq.write_table(table.replace_schema_metadata({b"stormproof": json.dumps(tag).encode()}), part)
    with part.open("r+b") as file:
        seal(file)
    with pytest.raises(StoreError, match=r"part-000000.parquet has schema 1, this version reads 2; use the"):
        Run(made).score()


def test_other_pixels_are_refused(made: Path, tmp_path: Path) -> None:
    image = tmp_path / "scene" / "images" / "001.png"
    write_image(image, 255 - read_image(image))
    for act in (lambda: Run(made).score(), lambda: again(made, conditions=["fog@3"])):
        with pytest.raises(StoreError, match=r"was run on other pixels: 2 of instances changed"):
            act()
    image.unlink()  # images that are not here cannot be compared, and scores need none
    Run(made).score()


def test_images_exchanged_during_a_run_are_named(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stormproof.engine import run as engine

    image = tmp_path / "scene" / "images" / "001.png"
    write_image(image, 255 - read_image(image))
    monkeypatch.setattr(engine, "check_images", lambda *_: None)  # too late for the check at the start
    with pytest.raises(StoreError, match="2 of instances is not the image that this run began with"):
        again(made, conditions=["fog@3"])


def test_code_that_a_record_names_is_not_run(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "trap.py"
    trap.write_text(f"from pathlib import Path\nPath({str(tmp_path / 'sprung')!r}).touch()\ndata = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    record = json.loads((made / "run.json").read_text())
    del record["digest"]
    record["dataset"]["spec"] = "trap.inner:data"
    (made / "run.json").write_text(json.dumps(record | {"digest": json_digest(record)}))
    with pytest.raises(InvalidOption, match=r"runs only if you name it: --data trap.inner:data"):
        Run(made).score()
    assert not (tmp_path / "sprung").exists()


def test_shards_that_start_together_lose_nothing(made: Path, tmp_path: Path) -> None:
    record, out = read_record(made), tmp_path / "shared"
    texts = [("clean", f"fog@{k}") for k in (1, 2, 3, 4, 5)]
    gate = threading.Barrier(len(texts))

    def start(conditions: tuple[str, ...]) -> None:
        gate.wait()
        with claiming(out):
            claim(out, record.model_copy(update={"conditions": conditions}))

    for _ in range(5):
        threads = [threading.Thread(target=start, args=(each,)) for each in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {*read_record(out).conditions} == {"clean", *(f"fog@{k}" for k in (1, 2, 3, 4, 5))}
        shutil.rmtree(out)


def test_an_unreadable_image_is_left_out_of_every_condition(made: Path, tmp_path: Path) -> None:
    (tmp_path / "scene" / "images" / "004.png").write_bytes(b"no image")
    folder = tmp_path / "holes"
    again(made, out=str(folder))
    few = Run(folder).score()
    assert few.missing == ()
    assert "mean" in few.aggregates["AP"]
    shown = CliRunner().invoke(app, ["score", str(folder)])
    assert "scored on 5 of 6 images (1 unreadable)" in shown.stderr
    truth = CliRunner().invoke(app, ["export", str(folder), "--truth", "--out", str(tmp_path / "truth")])
    assert truth.exit_code == 0, truth.output
    kept = json.loads((tmp_path / "truth" / "clean.json").read_text())
    assert [image["id"] for image in kept["images"]] == [1, 2, 3, 4, 6]


def test_a_folder_without_any_row_can_be_used_again(made: Path, tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text("def find(images):\n    raise ValueError('no weights')\n")
    out = str(tmp_path / "mine")
    with pytest.raises(RunError, match="no weights"):
        again(made, model=f"{script}:find", out=out)
    failed = read_failures(tmp_path / "mine")
    assert "in find" in failed[0]["trace"]
    script.write_text(
        "def find(images):\n    return [{'boxes': [], 'scores': [], 'labels': []} for _ in images]\n"
    )
    again(made, model=f"{script}:find", out=out)
    assert np.isfinite(Run(tmp_path / "mine").score().per_condition["AP"]["clean"])
