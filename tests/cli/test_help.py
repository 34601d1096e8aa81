"""The help page: verbs in groups, an example for each, and the verbs of other packages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from typer.main import get_command
from typer.testing import CliRunner

from helpers.typed import stormproof
from stormproof.cli import RUN_AND_SCORE, VERBS, app

PLUGIN = '''
from stormproof.cli import MAKE_DATA, app

@app.command(rich_help_panel=MAKE_DATA)
def moon():
    """Write moonlit scenes.

    Examples:

        stormproof moon
    """
    print("moonlight")

@app.command()
def sun():
    """Write sunlit scenes."""
'''


def panels(page: str) -> dict[str, list[str]]:
    """The verbs of a help page by panel, in order."""
    found: dict[str, list[str]] = {}
    for line in page.splitlines():
        if title := re.match(r"╭─ (.+?) ─", line):
            found[title[1]] = here = []
        elif verb := re.match(r"│ (\S+)", line):
            here.append(verb[1])
    return found


def test_verbs_are_in_groups() -> None:
    shown = panels(CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).stdout)
    assert [*shown][1:6] == [*VERBS]
    assert shown[RUN_AND_SCORE][:3] == ["run", "score", "report"]
    assert "Commands" not in shown  # the panel of what has none


def test_every_verb_has_an_example() -> None:
    group = get_command(app)
    for name in group.list_commands(None):  # type: ignore[attr-defined]
        verb = group.get_command(None, name)  # type: ignore[attr-defined]
        inner = getattr(verb, "commands", {name: verb})
        for command in inner.values():
            assert re.search(r"Examples?:\s+stormproof ", command.help or ""), name


def test_another_package_brings_its_own_verbs(tmp_path: Path) -> None:
    (tmp_path / "nightly.py").write_text(PLUGIN)
    about = tmp_path / "nightly-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: nightly\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[stormproof.commands]\nnight = nightly\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", "from stormproof.cli import main; main()"]
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "200", "NO_COLOR": "1"}
    said, page = (
        subprocess.run([*command, word], env=environment, capture_output=True, text=True, check=True).stdout
        for word in ("moon", "--help")
    )
    assert said == "moonlight\n"
    assert "moon" in panels(page)["Make data"]
    assert "sun" in panels(page)["More"]


def test_a_command_imports_the_file_of_its_verb_alone() -> None:
    code = """
import sys
from stormproof.cli import main
sys.argv = ["stormproof", "score", "--help"]
try:
    main()
finally:
    print(*(name for name in sys.modules if name.startswith("stormproof.")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = done.stdout.splitlines()[-1].split()
    assert "stormproof.cli.score" in imported
    assert not {"stormproof.cli.run", "stormproof.engine.config", "stormproof.style.commands"} & {*imported}


def test_a_misspelt_verb_is_recognised() -> None:
    done = stormproof("leaderbord")
    assert done.returncode == 2
    assert "Did you mean 'leaderboard'?" in done.stderr


def test_one_flag_names_conditions_and_suites(tmp_path: Path) -> None:
    for verb in ("run", "corrupt", "gallery", "quality"):
        shown = stormproof(verb, "--help").stdout
        assert "--conditions" in shown
        assert "--suite" not in shown
