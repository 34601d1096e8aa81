"""The leaderboard's pages: a pure function of submissions."""

from __future__ import annotations

import base64
import gzip
import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, counted
from stormproof.core.files import make_folder, write_text
from stormproof.core.table import cell_text
from stormproof.core.text import plain
from stormproof.report.charts import spec_of
from stormproof.report.elements import Axis, Datum, Figure, Kind
from stormproof.report.leaderboard.submission import Submission, as_json, read_submission
from stormproof.report.page import charting, environment
from stormproof.report.sections import SEVERITY, group_by_severity, per_cent, unit

_NAME = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A submission with its place: the rank among those of its task, dataset, measure and conditions."""

    submission: Submission
    slug: str
    rank: int | None

    @property
    def name(self) -> str:
        return plain(self.submission.model.name)

    @property
    def dataset(self) -> str:
        return plain(self.submission.dataset.name)

    @property
    def tags(self) -> dict[str, str]:
        return {plain(key): plain(value) for key, value in self.submission.model.tags.items()}

    @property
    def backbone(self) -> str:
        return self.tags.get("backbone", "")

    def number(self, field: str) -> float | None:
        """P, mPC or rPC in per cent; none where the grid is incomplete."""
        value = getattr(self.submission, field)
        return None if value is None else 100 * value


def read_folder(folder: Path) -> list[Submission]:
    """Every submission below a folder, in the order of file names; the first bad file is refused by name."""
    paths = sorted(folder.rglob("*.json"))
    if not paths:
        raise InvalidOption(f"{folder} contains no submissions: there is no .json file.")
    return [read_submission(path) for path in paths]


def drop_verification(submission: Submission) -> Submission:
    """A submission without the block that says it was run again: anyone can write one into a file."""
    return submission.model_copy(update={"verification": None})


def rank_entries(submissions: Iterable[Submission]) -> list[Entry]:
    """Entries by contest, best first; equal means share a rank, incomplete entries come last without one."""
    unique = {as_json(s): s for s in submissions}
    slugs = _slugs(unique)
    contests: dict[tuple[str, ...], list[tuple[str, Submission]]] = {}
    for text, submission in unique.items():
        contests.setdefault(contest(submission), []).append((slugs[text], submission))
    ranked = []
    for key in sorted(contests):
        whole = sorted(contests[key], key=lambda pair: (_order(pair[1]), pair[1].model.name, pair[0]))
        means = [_order(submission) for _, submission in whole]
        for slug, submission in whole:
            rank = 1 + means.index(_order(submission)) if submission.mPC is not None else None
            ranked.append(Entry(submission, slug, rank))
    return ranked


def contest(submission: Submission) -> tuple[str, ...]:
    """What two entries must share for their means to be compared: task, dataset, measure and conditions."""
    over = submission.conditions or tuple(sorted(submission.by_corruption))
    conditions = hashlib.blake2b("\0".join(sorted(over)).encode(), digest_size=4).hexdigest()
    images = str(submission.dataset.images or "")
    return submission.task, submission.dataset.name, images, submission.measure, conditions


def _order(submission: Submission) -> float:
    if submission.mPC is None:
        return math.inf
    return -submission.mPC if submission.higher else submission.mPC


def _slugs(texts: Mapping[str, Submission]) -> dict[str, str]:
    """A file name per entry: its model's, with a hash of the content so that none can take another's."""
    return {
        text: f"{_NAME.sub('-', s.model.name.lower()).strip('-')[:60] or 'model'}-"
        f"{hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"
        for text, s in texts.items()
    }


def build_site(submissions: Sequence[Submission], out: Path) -> list[Path]:
    """Write the pages, over any earlier ones."""
    entries = rank_entries(submissions)
    make_folder(out / "models")
    make_folder(out / "assets")
    script = gzip.decompress(base64.b64decode(charting())).decode()
    written = [_write(out / "assets" / "charts.js", f"(function(){{{script}\n}})();")]
    template = environment().get_template("entry.html")
    for entry in entries:
        page = out / "models" / f"{entry.slug}.html"
        written.append(_write(page, template.render(entry=entry, **_page(entry))))
        written.append(_write(page.with_suffix(".json"), as_json(entry.submission)))
    index = environment().get_template("leaderboard.html").render(
        boards=_boards(entries), entries=entries,
        tasks=sorted({e.submission.task for e in entries}),
        datasets=sorted({e.dataset for e in entries}),
        backbones=sorted({e.backbone for e in entries} - {""}),
    )  # fmt: skip
    return [_write(out / "index.html", index), *written]


def _boards(entries: Sequence[Entry]) -> list[tuple[str, list[Entry]]]:
    """Entries by contest, each with its heading."""
    boards = [[*board] for _, board in groupby(entries, key=lambda entry: contest(entry.submission))]
    return [(_heading(board[0]), board) for board in boards]


def _heading(entry: Entry) -> str:
    s = entry.submission
    over = len(s.conditions) or len(s.by_corruption)
    what = (
        counted(over, "condition")
        if s.conditions
        else f"{counted(over, 'corruption')}, means over severities"
    )
    images = f", {counted(s.dataset.images, 'image')}" if s.dataset.images else ""
    return f"{s.task.capitalize()} on {entry.dataset}{images}: {unit(s.measure)} over {what}"


def _page(entry: Entry) -> dict[str, object]:
    """What a model's page shows: the grid as a coloured table, and curves."""
    s = entry.submission
    levels = group_by_severity(map(Condition.parse, s.conditions))
    severities = sorted({c.severity for row in levels.values() for c in row if c.severity is not None})
    most = max([*s.grid.values(), *s.by_corruption.values()], default=1.0) or 1.0
    table = [
        (
            name,
            [
                _cell(s, {c.severity: s.grid.get(str(c)) for c in row}.get(level), most)
                for level in severities
            ],
        )
        for name, row in levels.items()
    ]
    loose = [
        (text, _cell(s, s.grid.get(text), most))
        for text in s.conditions
        if Condition.parse(text).severity is None
    ]
    loose += [(plain(name), _cell(s, value, most)) for name, value in s.by_corruption.items()]
    figure = _curves(s, levels)
    return {
        "severities": severities,
        "table": table,
        "loose": loose,
        "figure": figure,
        "spec": spec_of(figure) if figure else None,
    }


def _cell(submission: Submission, value: float | None, most: float) -> tuple[str, float | None]:
    """A score as it is printed, and its position on the colour scale from 0 to 1."""
    if value is None:
        return "missing", None
    return cell_text(per_cent(submission.measure, value)), value / most


def _curves(submission: Submission, levels: Mapping[str, Sequence[Condition]]) -> Figure | None:
    rows: list[Datum] = []
    for name, row in levels.items():
        points = [(0.0, "clean"), *((float(c.severity or 0), str(c)) for c in row)]
        rows += [
            {
                "x": x,
                "y": per_cent(submission.measure, submission.grid[text]),
                "panel": name,
                "series": "score",
            }
            for x, text in points
            if text in submission.grid
        ]
    if not rows:
        return None
    return Figure(
        "curves",
        f"{submission.measure} by severity",
        Kind.LINES,
        SEVERITY,
        Axis(unit(submission.measure), zero=True),
        rows,
        panel="corruption",
    )


def _write(path: Path, text: str) -> Path:
    write_text(path, text)
    return path
