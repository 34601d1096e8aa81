"""From nothing to a page: build both wheels, install them into an empty environment, and use them there.

    python tests/programs/wheel.py --out dist        # make test-wheel

Runs a function of ours with the first wheel alone, the README's Python and commands and the notebook with
both, and at last the scripts of the GitHub Action in another empty environment, which install a checkout as
the README does. Prints how long each step took and how large it came out; fails if a wheel is too large or a
step fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 5_000_000  # bytes of the wheel that everyone installs
SHORTER = {"stormproof demo": "stormproof demo --scenes 1"}  # the whole demo takes minutes
ALONE = """
import stormproof as sp
answer = {"boxes": [[40, 150, 200, 260]], "scores": [0.9], "labels": [0]}
model = lambda images: [answer] * len(images)
run = sp.run(model, "world:test", limit=2, conditions="contrast@3", out="alone")
assert run.score().p >= 0
"""
NOTEBOOK = """
import nbclient, nbformat
book = nbformat.read({path!r}, as_version=4)
nbclient.NotebookClient(book, timeout=600).execute()
assert "<iframe" in book.cells[-1].outputs[-1]["data"]["text/html"]
"""


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page in one language."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[str]:
    """What a page says to type, line by line."""
    return [line[2:] for block in blocks(page, "console") for line in block.splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    out = parser.parse_args().out.resolve()
    own, networks = build(out, ROOT, "stormproof"), build(out, ROOT / "networks", "stormproof_networks")
    assert own.stat().st_size <= LARGEST, f"{own.name} is larger than {LARGEST / 1e6:g} MB"
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "empty", with_pip=True)
        use(own, networks, place)
        size = sum(file.stat().st_size for file in (place / "empty").rglob("*") if file.is_file())
    print(f"all of it in {time.monotonic() - begun:.0f} s; the environment: {size / 1e6:.0f} MB")


def build(out: Path, source: Path, name: str) -> Path:
    step(
        f"build {name}",
        f'"{sys.executable}" -m build --no-isolation --wheel --outdir "{out}" "{source}"',
        ROOT,
        os.environ,
    )
    wheel = max(out.glob(f"{name}-[0-9]*.whl"), key=lambda one: one.stat().st_mtime)
    print(f"  {wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")
    return wheel


def use(own: Path, networks: Path, place: Path) -> None:
    """Install the wheels one after the other, and try what each is said to be enough for."""
    binaries = place / "empty" / ("Scripts" if sys.platform == "win32" else "bin")
    inside = {
        **os.environ,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_QUIET": "1",
        "PIP_NO_COMPILE": "1",  # what is imported is compiled then; all of it takes half a minute
        "PIP_FIND_LINKS": str(own.parent),
    }
    step("pip install stormproof", f'pip install "{own}"', place, inside)
    bring_kernels(place / "empty")
    (place / "alone.py").write_text(ALONE, encoding="utf-8")
    step("a run without networks", "python alone.py", place, inside)
    refused = subprocess.run(
        [binaries / "stormproof", "demo"], cwd=place, env=inside, capture_output=True, text=True, check=False
    )
    assert refused.returncode, "the demo ran without its networks"
    assert "pip install ./networks" in " ".join(refused.stderr.split()), refused.stderr
    step("pip install stormproof[demo]", f'pip install "{own}[demo]"', place, inside)
    assert list((place / "empty").rglob(f"{networks.name.partition('-py3')[0]}.dist-info"))
    for number, block in enumerate(blocks(ROOT / "README.md", "python")):
        (place / f"readme_{number}.py").write_text(block, encoding="utf-8")
        step("the README's Python", f"python readme_{number}.py", place, inside)
    install, *typed = commands(ROOT / "README.md")
    assert install == "pip install ./networks ."  # as the action does
    for command in typed:
        step(command, SHORTER.get(command, command), place, inside)
    for page in ("demo/report.html", "mine.html"):
        assert (place / page).stat().st_size > 100_000, f"{page} is not a whole report"
    step("install nbclient", f'"{ROOT / ".ci" / "install"}" empty nbclient ipykernel', place, inside)
    (place / "notebook").mkdir()
    (place / "notebook" / "run.py").write_text(NOTEBOOK.format(path=str(ROOT / "docs" / "notebook.ipynb")))
    step("the notebook", "python run.py", place / "notebook", inside)
    act(checkout(place / "clone"), place)


def act(clone: Path, place: Path) -> None:
    """Run the scripts of the action that is in a checkout, in an empty environment, for a small model."""
    venv.create(place / "action", with_pip=True)
    action = yaml.safe_load((clone / "action.yml").read_text(encoding="utf-8"))
    inputs = {name: str(one.get("default", "")) for name, one in action["inputs"].items()}
    inputs |= {
        "model": "builtin:street-grid",
        "data": "world:val,size=128x80,count=50",
        "conditions": "fog@3",
    }
    values = {f"inputs.{name}": value for name, value in inputs.items()}
    values["github.action_path"] = str(clone)
    folder = place / "repository"
    folder.mkdir()
    (folder / "requirements.yaml").write_text(
        "requirements: [{id: R1, metric: AP, condition: clean, at_least: 0.01}]\n"
    )
    path = f"{place / 'action' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    for one in (one for one in action["runs"]["steps"] if "run" in one):
        given = {
            key: re.sub(r"\$\{\{ (.+?) \}\}", lambda match: values[match[1]], value)
            for key, value in one["env"].items()
        }
        inside = {**os.environ, "PATH": path, "PIP_NO_COMPILE": "1", **given}
        script = f"bash --noprofile --norc -eo pipefail -c {shlex.quote(one['run'])}"
        step(f"the action: {one['name']}", script, folder, inside)
        if one["name"] == "Install":
            bring_kernels(place / "action")
    for name in ("verdicts.xml", "evidence.json", "report.html"):
        assert (folder / inputs["out"] / name).stat().st_size, f"the action has not written {name}"


def bring_kernels(environment: Path) -> None:
    """Copy the loops that tests compiled here: Numba knows them by their source, and all take minutes."""
    source = ROOT / "src" / "stormproof"
    (package,) = (path.parent for path in environment.rglob("stormproof/__init__.py"))
    for compiled in source.rglob("__pycache__/*.nb[ci]"):
        there = package / compiled.relative_to(source)
        there.parent.mkdir(exist_ok=True)
        shutil.copy(compiled, there)


def checkout(folder: Path) -> Path:
    """A copy of the files that a clone has."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def step(what: str, command: str, folder: Path, environment: os._Environ[str] | dict[str, str]) -> str:
    """Run a command line as a shell would, and say how long it took, also of all cores; what it printed."""
    begun, before = time.monotonic(), os.times()
    ended = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{what} failed\n{ended.stdout[-2000:]}\n{ended.stderr[-4000:]}"
    after = os.times()
    worked = sum(after[2:4]) - sum(before[2:4])  # by children: user and system
    print(f"{what}: {time.monotonic() - begun:.0f} s, {worked:.0f} s of CPU", flush=True)
    return ended.stdout


if __name__ == "__main__":
    main()
