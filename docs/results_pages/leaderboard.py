"""Write docs/results/*.json: the networks of docs/results as entries of the leaderboard.

python docs/make_leaderboard.py

Made from the runs that docs/make_results.py keeps under runs/results, with fingerprints and a hash of the
predictions; a network that was not run here keeps the entry it has.
"""

from __future__ import annotations

import re

from make_results import RESULTS, ROOT, RUNS, Run

from stormproof.report.leaderboard.submission import Submission, SubmittedDataset, as_json, submission_of
from stormproof.results.run import Run as Opened

NOTE = "A small network on a few dozen photographs: enough to see the machinery work, too few to rank models."
PHOTOGRAPHS = re.compile(r"(?:all )?\d+ (?:at hand )?of (?P<dataset>.+)")


def entry_of(run: Run) -> Submission:
    """A run's entry, under the names of the page, with the command that repeats it."""
    made = submission_of(Opened(ROOT / "runs" / "results" / run.name), note=NOTE)
    name = PHOTOGRAPHS.fullmatch(run.photographs)
    assert name is not None, run.photographs
    dataset = SubmittedDataset(
        name=name["dataset"], fingerprint=made.dataset.fingerprint, images=made.dataset.images
    )
    model = made.model.model_copy(update={"name": run.network})
    command = {"command": run.command("run")}
    return made.model_copy(
        update={"model": model, "dataset": dataset, "provenance": made.provenance | command}
    )


def main() -> None:
    for run in RUNS:
        if (ROOT / "runs" / "results" / run.name / "run.json").exists():
            (RESULTS / f"{run.name}.json").write_text(as_json(entry_of(run)), encoding="utf-8")
        else:
            print(f"{run.name} was not run here; its entry stays as it is")


if __name__ == "__main__":
    main()
