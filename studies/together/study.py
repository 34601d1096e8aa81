"""What do two corruptions cost together, and would the single ones have told?

    python studies/together/study.py --runs DIR                # runs, then renews scores.npz and README.md
    python studies/together/study.py --runs DIR --device cuda  # the same on a GPU
    python studies/together/study.py                           # renews README.md from scores.npz
    python studies/together/study.py --check                   # only compares them, and fails if they differ
    python studies/together/study.py --runs DIR --conditions weather-at-night   # keeps other scores

A stopped study continues.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import stormproof as sp
from stormproof.core.condition import CLEAN
from stormproof.corruptions.grammar import read_conditions
from stormproof.results.interaction import PREDICTIONS, Interaction, interactions
from stormproof.results.interval import LEADING, draws
from stormproof.results.scores import Replicates, Scores

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1] / "docs")]
from parts import from_to, renew, table

NETWORKS = {"street-grid": "AP", "street-context": "mIoU"}
CONDITIONS, SCENES, WORST = "common-pairs,weather-at-night", 200, 10
SAME = 1e-6  # two scores that differ by less are the same; kept ones have four bytes
Found = Mapping[str, list[Interaction]]  # by network


def write(path: Path, scores: Mapping[str, Scores]) -> None:
    """Keep the scores of each network by condition, with its optimism and halves."""
    first = next(iter(scores.values()))
    arrays: dict[str, Any] = {
        "conditions": np.array(list(first.conditions)),
        "images": np.array(first.images),
    }
    for name, one in scores.items():
        cells, spread = one.per_condition[NETWORKS[name]], one.spread(NETWORKS[name])
        arrays[name] = np.array([cells[text] for text in first.conditions], np.float32)
        kept = [[cells[text] - spread[text][0], *spread[text][LEADING:]] for text in first.conditions]
        arrays[f"{name}/drawn"] = np.array(kept, np.float16)
    np.savez_compressed(path, **arrays)


def read(path: Path) -> dict[str, Scores]:
    """The scores that `write` kept."""
    with np.load(path) as kept:
        conditions, images = kept["conditions"].tolist(), int(kept["images"])
        found = {}
        for name, measure in NETWORKS.items():
            cells = dict(zip(conditions, kept[name].astype(float).tolist(), strict=True))
            rows = dict(zip(conditions, kept[f"{name}/drawn"].astype(float), strict=True))
            drawn = {
                text: draws(np.r_[cells[text], row[1:]], float(row[0]), clean=text == "clean")
                for text, row in rows.items()
            }
            found[name] = Scores(
                name, "world:test", images, {measure: cells}, tuple(conditions), metric=measure,
                replicates=Replicates({measure: drawn}, {}),
            )  # fmt: skip
    return found


def renewed(kept: Scores, run: Scores, name: str) -> Scores:
    """The scores of the study: those of a run of some conditions, and kept ones for the others.

    Intervals of pairs compare halves of the same scenes, so a condition that is in both, as the clean one
    always is, must have the same score in both.
    """
    measure = NETWORKS[name]
    old, new = kept.per_condition[measure], run.per_condition[measure]
    unlike = [text for text in new if abs(old.get(text, new[text]) - new[text]) > SAME]
    if unlike or kept.images != run.images:
        differ = ", ".join(unlike) or f"{run.images} scenes, not {kept.images}"
        raise SystemExit(f"{name} differs from the scores kept: {differ}. Run every condition again.")
    order = [str(condition) for condition in (CLEAN, *read_conditions([CONDITIONS]))]
    missing = [text for text in order if text not in old and text not in new]
    if missing:
        raise SystemExit(f"{name} has no scores under {', '.join(missing)}: add them to --conditions.")
    cells = {text: new.get(text, old.get(text)) for text in order}
    drawn = {**kept.spread(measure), **run.spread(measure)}
    return replace(
        kept, conditions=tuple(order), per_condition={measure: cells},
        replicates=Replicates({measure: {text: drawn[text] for text in order}}, {}),
    )  # fmt: skip


def found_in(scores: Mapping[str, Scores]) -> Found:
    return {name: list(interactions(one, NETWORKS[name]).values()) for name, one in scores.items()}


def points(value: float) -> str:
    return f"{100 * value:.1f}"


def beyond(one: Interaction, by: str) -> str:
    """The interaction in points, in bold if all of its interval is above zero."""
    interval = one.beyond[by]
    words = from_to(*(100 * value for value in (interval.estimate, interval.low, interval.high)))
    return f"**{words}**" if one.worse(by) else words


def worst(found: Found, by: str) -> str:
    """The pairs of each network that cost most beyond a prediction."""
    rows = [
        [name, f"`{one.condition}`", points(one.cost.estimate), points(one.predicted(by)), beyond(one, by)]
        for name, every in found.items()
        for one in sorted(every, key=lambda one: -one.beyond[by].estimate)[:WORST]
    ]
    return table(["network", "pair", "costs", f"{by} of its parts", "beyond it"], rows)


def night(found: Found) -> str:
    """Weather at night."""
    rows = [
        [name, f"`{one.condition}`", points(one.cost.estimate), *(beyond(one, by) for by in PREDICTIONS)]
        for name, every in found.items()
        for one in every
        if "night" in one.condition
    ]
    return table(["network", "pair", "costs", "beyond the sum", "beyond the product"], rows)


def errors(found: Found, scores: Mapping[str, Scores]) -> str:
    """How wrong the predictions are over all pairs, in points; no loss exceeds the clean score."""
    rows = []
    for name, every in found.items():
        costs = np.array([100 * one.cost.estimate for one in every])
        clean = 100 * scores[name].score(NETWORKS[name])
        for by in PREDICTIONS:
            told = np.array([100 * one.predicted(by) for one in every])
            possible = np.minimum(told, clean)
            gaps = costs - possible
            rows.append([
                name, f"{by} of the parts", f"{(told > clean).sum()} of {len(every)}",
                f"{np.abs(gaps).mean():.1f}", f"{gaps.min():+.1f} to {gaps.max():+.1f}",
                f"{np.corrcoef(possible, costs)[0, 1]:.2f}",
                f"{sum(one.worse(by) for one in every)} of {len(every)}",
                f"{sum(one.beyond[by].high < 0 for one in every)} of {len(every)}",
            ])  # fmt: skip
    head = ["network", "prediction", "impossible", "off by", "cost − prediction", "correlation"]
    return table([*head, "clearly worse together", "clearly less bad"], rows)


def singles(scores: Mapping[str, Scores]) -> str:
    """What each corruption costs alone, in points."""
    first = next(iter(scores.values()))
    texts = [str(condition) for condition in first.corrupted if not condition.is_composed]
    rows = [
        [f"`{text}`", *(points(one.score(m) - one.score(m, text)) for m, one in _by_measure(scores))]
        for text in texts
    ]
    return table(["alone", *(f"{name}, {NETWORKS[name]}" for name in scores)], rows)


def _by_measure(scores: Mapping[str, Scores]) -> list[tuple[str, Scores]]:
    return [(NETWORKS[name], one) for name, one in scores.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=Path, help="where runs go")
    parser.add_argument("--conditions", default=CONDITIONS, help="run only these; others keep their scores")
    parser.add_argument("--scenes", type=int, default=SCENES)
    parser.add_argument("--device", help="cuda, to corrupt on a GPU")
    parser.add_argument("--workers", type=int, default=0, help="processes; one per core unless given")
    parser.add_argument("--scores", type=Path, default=HERE / "scores.npz")
    parser.add_argument("--page", type=Path, default=HERE / "README.md", help="whose tables are renewed")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.runs:
        scored = {}
        for name in NETWORKS:
            run = sp.run(
                f"builtin:{name}", "world:test", conditions=options.conditions, limit=options.scenes,
                out=options.runs / name, workers=options.workers, device=options.device,
            )  # fmt: skip
            scored[name] = run.score(interval=True)
        if options.conditions != CONDITIONS:
            kept = read(options.scores)
            scored = {name: renewed(kept[name], scored[name], name) for name in NETWORKS}
        write(options.scores, scored)
    scores = read(options.scores)
    found = found_in(scores)
    made = {by: worst(found, by) for by in PREDICTIONS}
    made |= {"errors": errors(found, scores), "singles": singles(scores), "night": night(found)}
    renew(options.page, made, check=options.check)


if __name__ == "__main__":
    main()
