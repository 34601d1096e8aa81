"""What the site has beyond the pages in docs/: pages made from the code, and pages that live elsewhere.

MkDocs calls `on_files` once and `on_page_markdown` for every page.
"""

from __future__ import annotations

import io
import posixpath
import re
import sys
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))  # for the name of `slug` in mkdocs.yml
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)\s#]+)(?=[)#])")
# Files outside docs/ that are pages or pictures of the site, by pattern; their place in it.
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
STUDIES = "studies/**/*"
SHOWN = {".md", ".png", ".jpg", ".webp", ".svg"}
SHIM = ROOT / ".browser" / "node_modules" / "iframe-worker" / "shim" / "index.js"  # `make site` installs it
SCENE, WIDTH, HEIGHT = 21, 384, 240  # of world:test, in the gallery


def slug(text: str, separator: str) -> str:
    """A heading's anchor as GitHub makes it, so that links work in both places."""
    kept = re.sub(r"[^\w\- ]", "", text.strip().lower())
    return kept.replace(" ", "-")


def on_files(files: Files, config: Any) -> Files:
    for source, place in _outside():
        files.append(File.generated(config, place, abs_src_path=str(source)))
    for name, content in {
        "gallery.md": _gallery_page(),
        "reference/commands.md": _commands(),
        "reference/python.md": _python(),
        **_gallery_pictures(),
        "site/iframe-worker.js": SHIM.read_text(encoding="utf-8"),
    }.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links as they work in the repository, made to work on the site."""
    own = page.file.src_uri
    places = {place: source for source, place in _outside()}
    here = places.get(own, ROOT / "docs" / own).parent
    known = {str(source): place for source, place in _outside()}

    def moved(found: re.Match[str]) -> str:
        target = Path(posixpath.normpath(posixpath.join(here.as_posix(), found[1])))
        if target.is_dir():
            target = target / "README.md"
        if str(target) in known:
            return posixpath.relpath(known[str(target)], posixpath.dirname(own) or ".")
        if target.is_relative_to(ROOT / "docs"):
            there = target.relative_to(ROOT / "docs").as_posix()
            return posixpath.relpath(there, posixpath.dirname(own) or ".")
        return found[1]

    linked = LINK.sub(moved, markdown)
    if own == "index.md":
        page.meta["hide"] = ["navigation"]
    # Files of the repository that the site does not show keep their name, not their link.
    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(?:#[^)]*)?\)", lambda m: _unlinked(m, own, files), linked)


def _unlinked(found: re.Match[str], own: str, files: Files) -> str:
    if re.match(r"https?:|mailto:|#", found[2]):
        return found[0]
    there = posixpath.normpath(posixpath.join(posixpath.dirname(own), found[2]))
    return found[0] if files.get_file_from_path(there) is not None else f"`{found[1].strip('`')}`"


def _outside() -> Iterator[tuple[Path, str]]:
    for name, place in OUTSIDE.items():
        yield ROOT / name, place
    for path in sorted(ROOT.glob(STUDIES)):
        if path.suffix in SHOWN:
            yield path, path.relative_to(ROOT).as_posix()


def _commands() -> str:
    """Every verb's own help, in the groups of `stormproof --help`."""
    import typer
    from click import Context

    from stormproof.cli import app

    group: Any = typer.main.get_command(app)
    context = Context(group, info_name="stormproof")
    lines = ["# Commands", "", "The help of every command, as `stormproof COMMAND --help` prints it.", ""]
    panels: dict[str, list[str]] = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command.hidden:
            continue
        panels.setdefault(getattr(command, "rich_help_panel", None) or "Commands", []).append(name)
    for panel, names in panels.items():
        lines += [f"## {panel}", ""]
        for name in names:
            command = group.get_command(context, name)
            lines += [f"### {name}", "", *_command(command, Context(command, context, name))]
            if hasattr(command, "list_commands"):
                inner = Context(command, context, name)
                for verb in command.list_commands(inner):
                    own = command.get_command(inner, verb)
                    lines += [f"#### {name} {verb}", "", *_command(own, Context(own, inner, verb))]
    return "\n".join(lines)


def _command(command: Any, context: Any) -> list[str]:
    words, *examples_of = re.split(r"Examples?:", command.help or "", maxsplit=1)
    examples, lines = "".join(examples_of), [words.strip(), ""]
    if examples.strip():
        shown = [line.strip() for line in examples.splitlines() if line.strip()]
        typed = [line for line in shown if re.match(r"[a-z]+ ", line)]
        lines += ["```", *typed, "```", "", *(line for line in shown if line not in typed), ""]
    rows = [record for parameter in command.params if (record := parameter.get_help_record(context))]
    if rows:
        lines += ["| option | |", "|---|---|"]
        lines += [f"| `{_cell(option)}` | {_cell(text).replace('<', '&lt;')} |" for option, text in rows] + [
            ""
        ]
    return lines


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _python() -> str:
    """The public names, each with its docstring."""
    import stormproof

    lines = [
        "# Python",
        "",
        "Everything that `import stormproof as sp` offers; [Python](../python.md) is the introduction.",
        "",
    ]
    for name, home in stormproof._HOMES.items():  # what a user needs first comes first
        lines += [f"::: stormproof.{home}.{name}", ""]
    return "\n".join(lines)


STEPS = 5  # of a slider, beside the clean image


@cache
def _shown() -> dict[str, dict[str, list[str]]]:
    """Every corruption once, under the first suite that has it, with the conditions of its slider."""
    from stormproof.corruptions import SUITES
    from stormproof.corruptions.corruption import CORRUPTIONS

    left, found = dict(CORRUPTIONS), {}
    for suite, members in SUITES.items():
        first = [one for name in members.corruptions if (one := left.pop(name, None)) is not None]
        found[suite] = {
            one.name: _steps(
                [f"{one.name}@{severity}" for severity in one.severities]
                or [str(condition) for condition in members if condition.corruption == one.name]
            )
            for one in first
        }
    found["others"] = {
        one.name: _steps([f"{one.name}@{severity}" for severity in one.severities])
        for one in left.values()
        if one.severities
    }
    return {suite: names for suite, names in found.items() if names}


def _steps(conditions: list[str]) -> list[str]:
    """A few of them, evenly from the first to the last."""
    kept = min(STEPS, len(conditions))
    return [conditions[round(k * (len(conditions) - 1) / max(kept - 1, 1))] for k in range(kept)]


def _gallery_page() -> str:
    from stormproof.corruptions import SUITES, find

    lines = [
        "---\nhide: [navigation]\n---",
        "# Gallery",
        "",
        "One street of the built-in world under every corruption. Move a slider: its left end is the clean "
        "image, and the text above it is the condition as you would write it in a command.",
        "",
    ]
    for suite, corruptions in _shown().items():
        about = f"{SUITES[suite].doc.rstrip('.')}." if suite in SUITES else "In no suite."
        lines += [f"## {suite}", "", about, "", '<div class="storm-gallery">']
        for name, conditions in corruptions.items():
            at = (len(conditions) + 1) // 2
            texts = escape("|".join(["clean", *conditions]))
            lines += [
                f'<figure><img src="gallery/{name}-{at}.webp" width="{WIDTH}" height="{HEIGHT}" '
                f'loading="lazy" alt="{escape(conditions[at - 1])}" data-storm="gallery/{name}" '
                f'data-conditions="{texts}">'
                f"<figcaption><code>{escape(conditions[at - 1])}</code>"
                f'<label><span class="storm-hidden">strength of {name}</span>'
                f'<input type="range" min="0" max="{len(conditions)}" value="{at}"></label>'
                f"<small>{_code(escape(find(name).doc))}</small></figcaption></figure>"
            ]
        lines += ["</div>", ""]
    return "\n".join(lines)


def _code(text: str) -> str:
    """Words between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text)


def _gallery_pictures() -> dict[str, bytes]:
    from PIL import Image

    from stormproof.corruptions import apply
    from stormproof.world.samples import render

    street = render(0, "test", SCENE, width=2 * WIDTH, height=2 * HEIGHT).sample

    def packed(image: Any) -> bytes:
        out = io.BytesIO()
        Image.fromarray(image).resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS).save(out, "WEBP", quality=70)
        return out.getvalue()

    made, clean = {}, packed(street.image)
    for corruptions in _shown().values():
        for name, conditions in corruptions.items():
            made[f"gallery/{name}-0.webp"] = clean
            for at, condition in enumerate(conditions, 1):
                made[f"gallery/{name}-{at}.webp"] = packed(apply(street, condition).image)
    return made
