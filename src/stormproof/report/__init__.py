"""The report: what runs' scores say, as a page, as figures for a paper, and as a leaderboard.

- `sources`: the scores of run folders, submissions and published tables
- `elements`: what a page consists of: sections, figures and tables, all plain data
- `sections/`: each a function from runs to a section, or to nothing where the runs lack what it needs
- `sentences`, `view`: the answer in words, and everything a page says: pure functions of scores
- `charts`: figures as Vega-Lite; `figures` writes them as files
- `imagery`, `worst`: images recreated from run and dataset
- `page`, `templates/`, `make`: the self-contained file, from start to finish
- `comparison`: two runs side by side
- `tables`, `terminal`, `paper_tables`, `notebook`: what is printed
- `leaderboard/`: submissions, and the site that is a pure function of them

A report never computes a metric: it reads `Scores`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class _Report(ModuleType):
    """`stormproof.report([…])` writes a report, even once this package of that name is imported."""

    def __call__(self, *runs: Any, **options: Any) -> Path:
        from stormproof.report.make import report

        return report(*runs, **options)


sys.modules[__name__].__class__ = _Report
