"""What the site has beyond the pages in docs/: pages made from the code, and pages that live elsewhere.

MkDocs calls `on_files` once and `on_page_markdown` for every page.
"""

from __future__ import annotations

import io
import posixpath
import re
import sys
from collections.abc import Iterator
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
    lines = ["# Commands", "", "What `stormproof VERB --help` says.", ""]
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
    return "\n".join(lines)


def _command(command: Any, context: Any) -> list[str]:
    words, _, examples = (command.help or "").partition("Examples:")
    lines = [words.strip(), ""]
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
        "`import stormproof as sp`: everything public. See [Python](../python.md) first.",
        "",
    ]
    for name in stormproof.__all__:
        home = stormproof._HOMES[name]
        lines += [f"::: stormproof.{home}.{name}", ""]
    return "\n".join(lines)


def _graded() -> dict[str, list[str]]:
    """Every corruption that has severities and needs nothing but the image, by suite."""
    from stormproof.corruptions import SUITES, find

    found: dict[str, list[str]] = {}
    seen: set[str] = set()
    for name in ("imagenet-c", "holdout", "optics", "camera", "mutators"):
        for corruption in SUITES[name].corruptions:
            one = find(corruption)
            if corruption not in seen and one.severities and not one.needs:
                seen.add(corruption)
                found.setdefault(name, []).append(corruption)
    return found


def _gallery_page() -> str:
    from stormproof.corruptions import SUITES, find

    lines = [
        "---\nhide: [navigation]\n---",
        "# Gallery",
        "",
        "One street of the built-in world under every corruption that has severities and needs no depth. "
        "Move a slider; its left end is the clean image.",
        "",
    ]
    for suite, names in _graded().items():
        lines += [f"## {suite}", "", SUITES[suite].doc, "", '<div class="storm-gallery">']
        for name in names:
            shown = f"{name}@3"
            lines += [
                f'<figure><img src="gallery/{name}-3.webp" width="{WIDTH}" height="{HEIGHT}" loading="lazy" '
                f'alt="{shown}" data-storm="gallery/{name}"><figcaption><code>{shown}</code>'
                f'<label><span class="storm-hidden">severity of {name}</span>'
                f'<input type="range" min="0" max="{max(find(name).severities)}" value="3"></label>'
                f"<small>{find(name).doc.replace('`', '')}</small></figcaption></figure>"
            ]
        lines += ["</div>", ""]
    return "\n".join(lines)


def _gallery_pictures() -> dict[str, bytes]:
    from PIL import Image

    from stormproof.corruptions import corrupt_image, find
    from stormproof.world.samples import render

    clean = render(0, "test", SCENE, width=2 * WIDTH, height=2 * HEIGHT).sample.image

    def packed(image: Any) -> bytes:
        out = io.BytesIO()
        Image.fromarray(image).resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS).save(out, "WEBP", quality=70)
        return out.getvalue()

    made = {}
    for names in _graded().values():
        for name in names:
            made[f"gallery/{name}-0.webp"] = packed(clean)
            for severity in find(name).severities:
                image = corrupt_image(clean, f"{name}@{severity}", image_id="gallery")
                made[f"gallery/{name}-{severity}.webp"] = packed(image)
    return made
