"""What is read of finished work: run folders, manifests of copies, requirements."""

from __future__ import annotations

import random
import tempfile
from functools import lru_cache
from pathlib import Path

from fuzz.dataset_targets import lay, quietly
from fuzz.mutate import json_bytes, mutate
from stormproof.tools.manifest import check, read_manifest


@lru_cache(maxsize=1)
def scored_runs() -> dict[str, dict[str, bytes]]:
    """Finished run folders with the scores kept in them, and what they were run on beside them."""
    from programs.torture import make_runs
    from stormproof.results.run import Run

    root = Path(tempfile.mkdtemp())
    runs = make_runs(root)
    found = {}
    for run in runs:
        Run(run).score(replicates=50)
        files = [p for p in sorted(run.rglob("*")) if p.is_file() and not p.name.startswith(".")]
        found[str(run)] = {str(p.relative_to(run)): p.read_bytes() for p in files}
    return found


def run_folder(dice: random.Random, folder: Path) -> None:
    """A run's parts, failures, kept scores, run.json and run.yaml, one of them changed, read in one
    of the ways."""
    from stormproof.report.sources import scores_of
    from stormproof.results.run import Run
    from stormproof.results.store.integrity import problems

    files = scored_runs()[dice.choice([*scored_runs()])]
    name = dice.choice([*files])
    lay({**files, name: mutate(name, files[name], dice)}, folder)
    readers = (
        lambda: Run(folder).score(replicates=50),
        lambda: list(problems(Run(folder), deep=True)),
        lambda: scores_of(str(folder)),
    )
    quietly(dice.choice(readers))


def manifest(dice: random.Random, folder: Path) -> None:
    """The list of corrupted copies."""
    entry = {"path": "a.png", "source": "a.png", "condition": "fog@3", "sha256": "0", "pixels_sha256": "1"}
    seed = json_bytes({"stormproof": "0", "seed": 0, "recipe_versions": {}, "files": [entry], "failed": []})
    (folder / "manifest.json").write_bytes(mutate("manifest.json", seed, dice))
    for copy in read_manifest(folder):
        quietly(lambda copy=copy: check(folder, copy))


_REQUIREMENTS = b"""requirements:
  - {id: R1, metric: AP, condition: clean, at_least: 0.3}
  - {id: R2, metric: mPC, at_least: 0.2}
"""


def requirements(dice: random.Random, folder: Path) -> None:
    from stormproof.results.requirements import read_requirements

    path = folder / "requirements.yaml"
    path.write_bytes(mutate("requirements.yaml", _REQUIREMENTS, dice))
    if dice.random() < 0.1:
        number = dice.choice(
            (
                str(10**400),
                "1e400",
                "-" + "9" * 400,
                "[" * 3000,
                "[" * 3000 + "]" * 3000,
                "{a: " * 3000,
                "0x" + "f" * 400,
            )
        )
        path.write_text(f"requirements:\n- {{id: R1, metric: AP, condition: clean, at_least: {number}}}\n")
    read_requirements(path)


_PLAN = b"""models:
  - {model: a.py:f, name: one, tags: {a: b}, expect: {AP: 0.3}}
  - onnx:net.onnx
datasets: ['world:val,count=2', 'coco:val.json']
conditions: [fog@3]
tags: {team: x}
out: runs/x
"""


def plan(dice: random.Random, folder: Path) -> None:
    """The runs of a plan: each writes inside the plan's folder."""
    from stormproof.engine.config import PLAN, read_settings
    from stormproof.engine.many import runs_of
    from stormproof.engine.plan import requested_conditions

    path = folder / "plan.yaml"
    path.write_bytes(mutate("plan.yaml", _PLAN, dice))
    settings = read_settings(path)
    if not any(name in settings for name in PLAN):
        return
    for config in runs_of(settings, str(path)):
        place, out = Path(str(settings["out"])), Path(config.out)
        assert out.is_relative_to(place), f"{out} is outside {place}"
        assert ".." not in out.relative_to(place).parts, f"{out} leads out of {place}"
        quietly(lambda config=config: requested_conditions(config))
