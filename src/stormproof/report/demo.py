"""What the demo says about its networks: a table, and a sentence for each."""

from __future__ import annotations

from collections.abc import Mapping

from stormproof.core.table import Entry, Table
from stormproof.corruptions.suites import find_suite
from stormproof.results.scores import Scores

NETWORKS = {"street-grid": "boxes", "street-masks": "masks", "street-context": "segments"}
SUITES = {"imagenet-c": "common", "camera": "camera", "contextual": "haze, defocus"}  # and their columns
LOWEST = 3  # conditions named per network


def answer(scored: Mapping[str, Scores]) -> Table:
    """A table of clean scores, mean scores under each suite, and the share of the clean score kept."""
    images = next(iter(scored.values())).images
    title = f"\nThree networks in the storm: {images} scenes of the built-in street, scores in %\n"
    rows: list[list[Entry]] = []
    for network, scores in scored.items():
        means = [scores.plain_mean(map(str, find_suite(name).conditions)) for name in SUITES]
        numbers = [100 * value for value in (scores.score(scores.headline), *means)]
        rows.append([network, NETWORKS[network], scores.headline, *numbers, f"{_share_kept(scores):.0%}"])
    return Table("demo", title, ("network", "finds", "measure", "clean", *SUITES.values(), "kept"), rows)


def findings(scored: Mapping[str, Scores]) -> list[str]:
    """One sentence per network: what it keeps, and under which conditions it scores lowest."""
    lines = []
    for name, scores in scored.items():
        values = scores.per_condition[scores.headline]
        lowest = sorted((value, text) for text, value in values.items() if text != "clean")[:LOWEST]
        worst = ", ".join(f"{text} ({100 * value:.1f})" for value, text in lowest)
        kept = f"{name} keeps {_share_kept(scores):.0%} of its clean {scores.headline}"
        lines.append(f"{kept} on these {scores.images} scenes; lowest scores: {worst}.")
    return lines


def _share_kept(scores: Scores) -> float:
    """The mean score under all conditions, as a share of the clean one."""
    clean = scores.score(scores.headline)
    return scores.plain_mean(map(str, scores.corrupted)) / clean if clean else 0.0
