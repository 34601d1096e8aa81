"""The networks under imagenet-c as entries of the leaderboard."""

from __future__ import annotations

from results_pages.imagenet_c import RUNS, dataset_of
from results_pages.runs import RESULTS, ResultsRun

from stormproof.report.leaderboard.submission import Submission, SubmittedDataset, as_json, submission_of

NOTE = "A small network on a few dozen photographs: enough to see the machinery work, too few to rank models."


def entry_of(run: ResultsRun) -> Submission:
    """A run's entry, under the names of the page, with the command that repeats it."""
    made = submission_of(run.opened, note=NOTE)
    dataset = SubmittedDataset(
        name=dataset_of(run), fingerprint=made.dataset.fingerprint, images=made.dataset.images
    )
    command = {"command": run.command}
    return made.model_copy(update={"dataset": dataset, "provenance": made.provenance | command})


def keep_entries() -> None:
    for run in RUNS:
        (RESULTS / f"{run.name}.json").write_text(as_json(entry_of(run)), encoding="utf-8")
