"""What runs in other people's CI: the scripts of the Action and of the GitLab template, really run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = re.compile(r"\$\{\{ inputs\.([\w-]+) \}\}")
GIVEN = {"model": "builtin:street-grid", "data": "world:val,size=128x80", "conditions": "fog@1,fog@3",
         "options": "--limit 16 --engine local", "install": "stormproof"}  # fmt: skip
KEPT = ("verdicts.xml", "evidence.json", "report.html")


def requirement(least: float) -> str:
    return f"requirements: [{{id: R1, metric: AP, condition: clean, at_least: {least}}}]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "requirements.yaml").write_text(requirement(0.01))
    return tmp_path


def shell(script: str, folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a script as CI does, with the commands of this Python first on the path and nothing to install."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "python").write_text('#!/bin/sh\n[ "$1 $2" = "-m pip" ] && exit 0\nexit 1\n')
    (tools / "stormproof").write_text(f'#!/bin/sh\nexec {sys.executable} -m stormproof "$@"\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", **variables}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_action_runs_checks_and_keeps(folder: Path) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    inputs = {name: one.get("default", "") for name, one in action["inputs"].items()} | GIVEN
    summary = folder / "summary.md"
    steps = [step for step in action["runs"]["steps"] if "run" in step]
    assert len(steps) == 4
    for step in steps:
        assert "${{" not in step["run"], "an input inside a script could be run"
        own = {key: VARIABLE.sub(lambda m: inputs[m[1]], value) for key, value in step["env"].items()}
        ended = shell(step["run"], folder, own | {"GITHUB_STEP_SUMMARY": str(summary)})
        assert ended.returncode == 0, f"{step['name']}\n{ended.stdout}\n{ended.stderr}"
    assert all((folder / inputs["out"] / name).stat().st_size for name in KEPT)
    row = next(line for line in summary.read_text().splitlines() if line.startswith("| R1"))
    assert "pass" in row
    kept = action["runs"]["steps"][-1]["with"]["path"]
    assert [Path(line).name for line in VARIABLE.sub("x", kept).split()] == list(KEPT)


def test_gitlabs_job_fails_after_it_has_kept_everything(folder: Path) -> None:
    (folder / "requirements.yaml").write_text(requirement(0.99))
    job = yaml.safe_load((ROOT / "docs" / "ci" / "gitlab.yml").read_text())["stormproof"]
    variables = job["variables"] | {key.upper(): value for key, value in GIVEN.items()}
    ended = shell("\n".join(job["script"]), folder, variables)
    assert ended.returncode == 1, f"{ended.stdout}\n{ended.stderr}"
    assert all((folder / variables["OUT"] / name).stat().st_size for name in (*KEPT, "verdicts.md"))


def test_the_workflow_gives_the_action_what_it_takes() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    workflow = yaml.safe_load((ROOT / "docs" / "ci" / "github.yml").read_text())
    given = workflow["jobs"]["check"]["steps"][-1]["with"]
    assert given.keys() <= action["inputs"].keys()
    assert {name for name, one in action["inputs"].items() if one.get("required")} <= given.keys()


def test_versions_agree() -> None:
    """The tag of a release, the action's example and both distributions name one version."""
    import stormproof

    versions = [
        re.search(r'^version = "(.+)"$', (ROOT / path).read_text(), re.MULTILINE)[1]
        for path in ("pyproject.toml", "networks/pyproject.toml")
    ]
    assert versions == [stormproof.__version__] * 2
    assert f"stormproof@v{stormproof.__version__}" in (ROOT / "docs" / "ci" / "github.yml").read_text()
