"""`stormproof.report` and `stormproof.compare`: what the command line writes and prints, from Python."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from stormproof.core.errors import InvalidOption, first_few
from stormproof.core.loading import framework
from stormproof.core.table import Table
from stormproof.report.comparison import compare_view
from stormproof.report.elements import View
from stormproof.report.make import Options, make_report, write_page
from stormproof.report.page import page
from stormproof.report.sources import Source, scores_of
from stormproof.results.run import Run
from stormproof.results.scores import Scores


def report(
    runs: Source | Iterable[Source],
    *,
    out: str | PathLike[str] = "report.html",
    measure: str | None = None,
    reference: str | None = None,
    images: int = 4,
    budget: float = 15.0,
) -> Path:
    """Write one self-contained page about one or more runs, and its numbers beside it as JSON.

    A run is a `Run`, its `Scores`, or what `stormproof report` takes: a folder, a submission's file,
    'published:…'. Runs are scored if need be, with 95 % intervals. `images` is how many the page's
    browser shows, each under every condition; `budget` is in MB. Returns the page's path.
    """
    several = [runs] if isinstance(runs, Run | Scores | str | PathLike) else list(runs)
    options = Options(measure, reference, images=images, budget=budget)
    return make_report(several, Path(out), options)[0]


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """What changed from one run to another: a sentence, a table of changes, and the page of both."""

    view: View

    @property
    def sentence(self) -> str:
        """The change on clean images and under corruption, and how many corruptions got better or worse."""
        return self.view.sentences[0]

    @property
    def table(self) -> Table:
        """Clean, the mean under corruption, then every corruption from what got worse to what got better."""
        return self.view.summary

    def to_frame(self) -> Any:
        """The table as a pandas frame."""
        return framework("pandas", extra="notebook").DataFrame(self.table.rows, columns=self.table.columns)

    def save(self, out: str | PathLike[str]) -> Path:
        """Write the comparison as a page, and its numbers beside it as JSON."""
        return write_page(Path(out), self.view, page(self.view))[0]

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.sentence)}</p>{self.table.as_html()}"

    def __repr__(self) -> str:
        return f"<comparison: {self.sentence}>"


def compare(
    before: Source, after: Source, *, measure: str | None = None, interval: bool = True
) -> Comparison:
    """What changed from one run to another, over the conditions that both hold.

    Where both are runs on the same images, changes have 95 % intervals and are called clear if chance is an
    unlikely explanation; `interval=False` saves the seconds that this takes.
    """
    first, second = (one_run(side, interval=interval) for side in (before, after))
    return Comparison(compare_view(first, second, measure=measure))


def one_run(source: Source, data: str | None = None, *, interval: bool) -> Scores:
    """The scores of a source that is one run; several are refused by name."""
    found = scores_of(source, data, interval=interval)
    if len(found) != 1:
        names = first_few([scores.name for scores in found])
        raise InvalidOption(f"{source} holds {len(found)} runs ({names}); name one of them.")
    return found[0]
