"""Settings from flags and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from typer.testing import CliRunner

from helpers.runs import Configure
from stormproof.cli import app
from stormproof.core.errors import InvalidOption, StormproofError
from stormproof.engine.config import EXPECTED, RunConfig, make_config, overlay, read_settings
from stormproof.engine.executors import Slurm, executor_for
from stormproof.engine.plan import requested_conditions
from stormproof.engine.run import run

LEAST = {"model": "a.b:c", "data": "images:x", "out": "o"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"bacth": 4}, "'bacth' is not a setting; did you mean 'batch'?"),
        ({"batch": 0}, "batch is 0"),
        ({"batch": "many"}, "batch is 'many'"),
        ({"model": None}, "model is None"),
        ({"data": None}, "give either data"),
        ({"root": "r"}, "root (--root) requires a benchmark"),
        ({"shard": "3/2"}, "must not exceed"),
        ({"shard": "0/2"}, "shard is '0/2'"),
        ({"timeout": -1}, "timeout is -1"),
        ({"seed": -1}, "seed is -1: it must be at least 0"),
        ({"shard": "two"}, "shard is 'two': write i/n, such as 2/8"),
        ({"conditions": 3}, "conditions is 3: it must be a list"),
        ({"tags": "a=b"}, "tags is 'a=b': it must be pairs of key: value"),
    ],
    ids=str,
)
def test_names_the_wrong_setting(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidOption) as error:
        make_config({**LEAST, **settings}, "run.yaml")
    assert words in str(error.value)
    assert str(error.value).startswith("run.yaml: ")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"engine": "pol"}, "Unknown engine 'pol'. Did you mean 'pool'?"),
        ({"engine": "ray,adress=auto"}, "Did you mean 'address'?"),
        ({"engine": "ray,gpus=-1"}, "it must be at least 0"),
        ({"engine": "ray,gpus=many"}, "expected float"),
        ({"engine": "ray", "device": "cuda"}, "requires --engine ray,gpus=1, or workers see no GPU"),
        ({"engine": "pool,gpus=1"}, "It takes: none."),
    ],
    ids=str,
)
def test_a_wrong_engine_is_refused_with_the_nearest_fix(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(StormproofError) as error:
        executor_for(make_config({**LEAST, **settings}), 1)
    assert words in str(error.value)


def test_slurm_takes_any_option_of_submitit() -> None:
    config = make_config(
        {**LEAST, "engine": "slurm,slurm_partition=gpu,slurm_mem=4,cluster=local", "workers": 3}
    )
    assert executor_for(config, 1) == Slurm(3, {"slurm_partition": "gpu", "slurm_mem": 4}, "local")


def test_every_error_about_a_value_is_in_our_own_words() -> None:
    """Whatever a setting is given, the sentence comes from our table, never from the library."""
    values = [-1, 0, 2**70, 1.5, "many", [1], {"a": [1]}, None, [[]], float("nan")]
    met = set()
    for name in RunConfig.model_fields:
        for value in values:
            try:
                RunConfig.model_validate({**LEAST, name: value})
            except ValidationError as error:
                met |= {problem["type"] for problem in error.errors()}
    assert met - {"value_error"} <= EXPECTED.keys()


def test_a_missing_setting_names_its_flag() -> None:
    with pytest.raises(InvalidOption, match="out is missing"):
        make_config({"model": "a.b:c", "data": "images:x"})


def test_yaml_is_read_safely(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("model: !!python/object/apply:os.system ['true']")
    with pytest.raises(InvalidOption, match="is not YAML"):
        read_settings(path)
    path.write_text("- a\n- b")
    with pytest.raises(InvalidOption, match="must hold settings"):
        read_settings(path)
    path.write_bytes(b"model: \xff")
    with pytest.raises(InvalidOption, match=r"is not UTF-8 text \(byte 7\)"):
        read_settings(path)
    path.write_text("modle: x")
    with pytest.raises(InvalidOption, match="did you mean 'model'"):
        read_settings(path)


def test_a_benchmark_takes_a_subset_of_its_own_conditions() -> None:
    run = {"model": "a.b:c", "out": "o", "benchmark": "coco-c", "root": "coco"}
    part = requested_conditions(make_config({**run, "conditions": ["fog@3, snow@1-2"]}))
    assert [str(c) for c in part] == ["clean", "snow@1", "snow@2", "fog@3"]
    assert len(requested_conditions(make_config({**run, "conditions": "noise"}))) == 1 + 15
    assert len(requested_conditions(make_config(run))) == 1 + 75
    with pytest.raises(InvalidOption, match="spatter@1 is not part of coco-c"):
        requested_conditions(make_config({**run, "conditions": ["spatter"]}))


def test_accepts_yaml_as_people_write_it(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        "model: a.b:c\ndata: images:x\nout: o\nconditions: noise, fog@3, snow@2\n"
        "tags: {year: 2024, fast: true}\nlimit:\nenhance: clahe\n"
    )
    config = make_config(read_settings(path))
    assert (config.conditions, config.enhance) == (("noise, fog@3, snow@2",), ("clahe",))
    assert len(requested_conditions(config)) == 1 + 15 + 2
    assert config.tags == {"year": "2024", "fast": "True"}
    assert config.limit is None


def test_a_flag_removes_settings_of_the_file_that_exclude_it() -> None:
    file = {"model": "a.b:c", "out": "o", "data": "images:x", "conditions": ["noise"], "seed": 2}
    flags = {"benchmark": "coco-c", "root": "coco", "data": None, "conditions": None}
    config = make_config(overlay(file, flags))
    assert (config.benchmark, config.data, config.conditions, config.seed) == ("coco-c", None, (), 2)
    back = overlay(config.model_dump(exclude_defaults=True), {"data": "images:y", "conditions": ["fog@3"]})
    assert (make_config(back).data, make_config(back).benchmark) == ("images:y", None)
    with pytest.raises(InvalidOption, match="give either data"):
        make_config(overlay(file, {"benchmark": "coco-c", "root": "coco", "data": "images:x"}))


def test_every_flag_is_a_setting() -> None:
    from typer.main import get_command

    command = get_command(app).get_command(None, "run")  # type: ignore[attr-defined]
    flags = {parameter.name for parameter in command.params} - {"files", "config", "dry_run", "help"}
    assert {"tags" if name == "tag" else name for name in flags} == set(RunConfig.model_fields)


def test_the_written_settings_repeat_the_run(configure: Configure, tmp_path: Path) -> None:
    from helpers.runs import all_bytes

    config = configure(tags={"backbone": "r50"}, seed=3)
    run(config)
    settings = read_settings(Path(config.out) / "run.yaml")
    settings["out"] = str(tmp_path / "again")
    run(make_config(settings))
    assert all_bytes(tmp_path / "again") == all_bytes(Path(config.out))
    assert make_config(settings).tags == {"backbone": "r50"}


def test_the_settings_of_a_grown_run_repeat_all_of_it(configure: Configure, tmp_path: Path) -> None:
    from helpers.runs import all_bytes

    config = configure(limit=5, conditions=["contrast@4"])
    run(config)
    run(configure(limit=3, conditions=["fog@2"]))
    settings = read_settings(Path(config.out) / "run.yaml")
    assert settings["limit"] == 5
    run(make_config(settings))  # the two images that fog lacked
    run(make_config({**settings, "out": str(tmp_path / "again")}))
    assert all_bytes(tmp_path / "again") == all_bytes(Path(config.out))
    run(configure(conditions=["fog@2"]))
    assert "limit" not in read_settings(Path(config.out) / "run.yaml")


def test_the_settings_of_shards_repeat_the_whole(configure: Configure, tmp_path: Path) -> None:
    """A shard's own folder repeats the shard; a shared or a merged one repeats the run."""
    from stormproof.results.store.merge import merge

    for i in (1, 2):
        run(configure(out="shared", shard=f"{i}/2"))
        run(configure(out=f"own{i}", shard=f"{i}/2"))
    merge(tmp_path / "merged", [tmp_path / "own1", tmp_path / "own2"])
    found = {
        name: read_settings(tmp_path / name / "run.yaml") for name in ("own1", "own2", "shared", "merged")
    }
    assert [found[name]["shard"] for name in found] == ["1/2", "2/2", "1/1", "1/1"]
    assert found["merged"]["out"] == str(tmp_path / "merged")
    assert make_config(found["merged"]) == make_config({**found["shared"], "out": str(tmp_path / "merged")})


def test_flags_override_the_file(configure: Configure, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    config = configure(limit=3)
    file.write_text(yaml.safe_dump(config.model_dump(mode="json", exclude_none=True)))
    shown = CliRunner().invoke(app, ["run", "--config", str(file), "--limit", "5", "--dry-run"])
    assert shown.exit_code == 0, shown.output
    assert "5 of 12" in shown.output
    assert "15, of which 15 are left" in shown.output
    assert not Path(config.out).exists()
