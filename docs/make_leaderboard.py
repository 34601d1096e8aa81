"""Write docs/results/*.json: the networks of docs/results as entries of the leaderboard.

python docs/make_leaderboard.py

Made from the scores that docs/make_results.py wrote, so without a hash of predictions; run the commands of
docs/results/README.md and `stormproof submit` for entries that do.
"""

from __future__ import annotations

import csv
import re

from make_results import RESULTS, RUNS

from stormproof.report.leaderboard.submission import (
    Submission,
    SubmittedDataset,
    SubmittedModel,
    as_json,
    derive,
)
from stormproof.report.leaderboard.submit import task_of

NOTE = "A small network on a few dozen photographs: enough to see the machinery work, too few to rank models."


def main() -> None:
    for run in RUNS:
        rows = list(csv.DictReader((RESULTS / f"{run.name}.csv").open(encoding="utf-8")))
        measure = "mIoU" if any(row["measure"] == "mIoU" for row in rows) else "AP"
        grid = {row["condition"]: float(row["value"]) for row in rows if row["measure"] == measure}
        conditions = tuple(text for text in grid if text != "clean")
        count, name = re.fullmatch(r"(?:all )?(\d+) (?:at hand )?of (.+)", run.photographs).groups()
        entry = Submission(
            origin="self-reported",
            task=task_of(measure),
            model=SubmittedModel(name=run.network),
            dataset=SubmittedDataset(name=name, images=int(count)),
            measure=measure,
            conditions=conditions,
            grid=grid,
            **derive(measure, grid, conditions, {}, None),
            seed=0,
            note=NOTE,
            provenance={"command": run.command("run")},
        )
        (RESULTS / f"{run.name}.json").write_text(as_json(entry), encoding="utf-8")


if __name__ == "__main__":
    main()
