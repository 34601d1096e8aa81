"""Tables that compare runs as the papers do; `stormproof score RUN… --table NAME` prints one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean

from stormproof.core.condition import Condition
from stormproof.core.errors import IncompleteGrid, InvalidOption, first_few
from stormproof.core.table import Entry, Table
from stormproof.metrics.corruption_error import ce, ce_by_group, corruption_matters, cross_scenario, mce
from stormproof.metrics.grid import Grid
from stormproof.metrics.prediction import PAIRS
from stormproof.metrics.roc import REFERENCE_FPPI
from stormproof.metrics.sequences import SIZES, distance_matrix
from stormproof.results.documents import curves_of
from stormproof.results.people import histograms, levels, open_people, predict_contextual
from stormproof.results.run import Run
from stormproof.results.scores import Scores

_WORST = 3  # images listed of each condition


def adr(runs: Sequence[Run], tag: str) -> list[Table]:
    """Average detection rate of people under each condition, and relative to clean (*pezzementi*, Table IV).

    Sensitivities are fixed on each run's clean images; FPPI of 10⁻³ need a thousand images to be seen.
    """
    opened = [open_people(run) for run in runs]
    names = _names(runs)
    columns = ("condition", *(word for name in names for word in (f"{name} (%)", f"{name}, % of clean")))
    rows: list[list[Entry]] = []
    for text in dict.fromkeys(text for people in opened for text in people.found):
        cells: list[Entry] = [text]
        for people in opened:
            here, clean = (people.adr(each) if text in people.found else math.nan for each in (text, "clean"))
            cells += [100 * here, 100 * here / clean if clean else None]
        rows.append(cells)
    return [Table("adr", "Average detection rate (ADR) of people", columns, rows, note=_reach(runs[0]))]


def roc(runs: Sequence[Run], tag: str) -> list[Table]:
    """Detection rate and FPPI reached at the sensitivities of the clean images, IoU 0.5 (*pezzementi*, Fig.
    5)."""
    rows: list[list[Entry]] = []
    for name, run in zip(_names(runs), runs, strict=True):
        people = open_people(run)
        clean = people.curve("clean")
        for text in people.found:
            curve = people.curve(text)
            for rate in REFERENCE_FPPI:
                rate_now, fppi = curve.at(clean.threshold_at(rate))
                rows.append([name, text, rate, 100 * rate_now, fppi])
    columns = ("model", "condition", "FPPI when clean", "rate (%)", "FPPI reached")
    title = "Detection rate of people at fixed sensitivities, IoU 0.5"
    return [Table("roc", title, columns, rows, digits=4, note=_reach(runs[0]))]


def lost_people(runs: Sequence[Run], tag: str) -> list[Table]:
    """The images in which finding a person becomes hardest, by the FPPI it takes (*pezzementi*, Fig. 6)."""
    rows: list[list[Entry]] = []
    for name, run in zip(_names(runs), runs, strict=True):
        people = open_people(run)
        for text in people.found:
            for each in people.worst(text, count=_WORST) if text != "clean" else ():
                gone = math.isinf(each.after)
                after: list[Entry] = ["never found", None] if gone else [each.after, each.orders]
                rows.append([name, text, each.id, each.before, *after])
    columns = ("model", "condition", "image", "FPPI clean", "FPPI now", "orders of magnitude")
    return [Table("lost", "Where finding a person becomes hardest", columns, rows, digits=3)]


def contextual(runs: Sequence[Run], tag: str) -> list[Table]:
    """Each system's ADR under defocus and haze, predicted from the others' under blur and blending
    (*pezzementi*, Figs. 7 and 8). Runs need --conditions mutators,contextual."""
    tables = []
    for name, fit in predict_contextual([open_people(run) for run in runs]).items():
        rows: list[list[Entry]] = []
        for j, text in enumerate(fit.contextual):
            weights = sorted(zip(fit.overall[j], fit.simple, strict=True), reverse=True)
            some = ", ".join(f"{weight:.2f} {simple}" for weight, simple in weights[:3] if weight > 0.005)
            pairs = zip(fit.observed[:, j], fit.predicted[:, j], strict=True)
            rows.append([text, *(100 * float(v) for pair in pairs for v in pair), some])
        heads = (f"{s} {word}" for s in fit.systems for word in ("observed", "predicted"))
        each = ", ".join(f"{s} {r2:.2f}" for s, r2 in fit.r2_by_system.items() if not math.isnan(r2))
        title = f"{name} from {PAIRS[name]}: ADR relative to clean (%), R² {fit.r2:.2f}"
        note = f"R² by system: {each}." if each else ""
        tables.append(Table(f"contextual-{name}", title, ("condition", *heads, "weights"), rows, note=note))
    return tables


def depth(runs: Sequence[Run], tag: str) -> list[Table]:
    """How much blur and blending haze and defocus put inside people's boxes (*pezzementi*, Fig. 8)."""
    tables = []
    for name, run in zip(_names(runs), runs, strict=True):
        shares = histograms(open_people(run))
        for corruption, simple in PAIRS.items():
            rows: list[list[Entry]] = [
                [text, *(100 * float(share) for share in row)]
                for text, row in shares.items()
                if Condition.parse(text).corruption == corruption
            ]
            sign = "σ" if corruption == "defocus" else "α"
            columns = ("condition", *(f"{sign} {level:g}" for level in levels(corruption)))
            title = f"{name}: {simple} inside people's boxes under {corruption} (share in %)"
            tables += [Table(f"depth-{corruption}", title, columns, rows, digits=0)] if rows else []
    return tables


def detectors(runs: Sequence[Run], tag: str) -> list[Table]:
    """CE per fault, means by part of the camera and by tag, and a t-test (*liu*, Table 2).

    Over the conditions that all runs have.
    """
    scored = [run.score() for run in runs]
    grids, rest = _over_common([_errors(scores) for scores in scored])
    groups = dict.fromkeys(scores.tags.get(tag, "") for scores in scored)
    tags = [f"{tag} {name or 'none'}" for name in groups] if any(groups) else []
    values = {"clean": [grid.clean for grid in grids]}
    values |= {name: [ce(grid)[name] for grid in grids] for name in ce(grids[0])}
    values["mean (mCE)"] = [mce(grid) for grid in grids]
    try:
        parts = [ce_by_group(grid) for grid in grids]
        values |= {f"mean of {name}": [part[name] for part in parts] for name in parts[0]}
    except (IncompleteGrid, KeyError):
        pass  # conditions other than liu's faults have no parts of a camera
    rows: list[list[Entry]] = []
    for name, row in values.items():
        means = [
            fmean(v for v, scores in zip(row, scored, strict=True) if scores.tags.get(tag, "") == group)
            for group in (groups if tags else ())
        ]
        rows.append([name, *(100 * v for v in (*row, *means))])
    test = corruption_matters(grids)
    alone = "" if math.isnan(test.t) else f" t = {test.t:.2f}, p = {test.p:.2g} as independent samples;"
    note = (
        f"Corruption adds {100 * test.increase:.1f} points of error;{alone} t = {test.paired:.2f}, "
        f"p = {test.paired_p:.2g} paired with each detector's clean error.{rest}"
    )
    return [Table("detectors", "CE by fault (in %)", ("fault", *_names(runs), *tags), rows, note=note)]


def scenarios(runs: Sequence[Run], tag: str) -> list[Table]:
    """Change of mCE by the scenario trained for (the tag) and the dataset tested on (*liu*, Table 4).

    Over the conditions that all runs have.
    """
    grids: dict[tuple[str, str], Grid] = {}
    for run in runs:
        scores = run.score()
        key = (f"{scores.model} ({scores.tags.get(tag, 'not said')})", scores.dataset)
        if key in grids:
            raise InvalidOption(f"{run.folder} is a second run of {key[0]} on {key[1]}; give one.")
        grids[key] = _errors(scores)
    common, rest = _over_common([*grids.values()])
    changes = cross_scenario(dict(zip(grids, common, strict=True)))
    columns = tuple(dict.fromkeys(tested for _, tested in changes))
    rows: list[list[Entry]] = [
        [name, *(100 * changes[name, tested] for tested in columns)]
        for name in dict.fromkeys(name for name, _ in changes)
    ]
    title = "Change of mCE against clean, in points of error"
    return [Table("scenarios", title, ("model (trained for)", *columns), rows, note=rest.strip())]


def alpha(runs: Sequence[Run], tag: str) -> list[Table]:
    """Scores of stylized runs along α by object size, and how far models lie apart (*theodoridis*, Fig.
    15)."""
    scored = [run.score() for run in runs]
    prefix = "mask " if all("mask AP" in scores for scores in scored) else ""
    rows: list[list[Entry]] = []
    series: dict[str, dict[str, dict[float, float]]] = {}
    for name, scores in zip(_names(runs), scored, strict=True):
        for size in SIZES:
            for (space, part), curve in curves_of(scores, prefix + size).items():
                series.setdefault(name, {})[f"{size} {space} {part}"] = curve
                rows += [[name, prefix + size, space, part, at, 100 * value] for at, value in curve.items()]
        if name not in series:
            fix = "run the suite object-centric, or conditions style[alpha=…]"
            raise InvalidOption(f"{name} was not run along α; {fix}.")
    columns = ("model", "measure", "space", "part", "α", "% of clean")
    tables = [Table("alpha", "Relative performance along α", columns, rows)]
    if len(series) > 1:
        distances = distance_matrix(series)
        apart = [[name, *row] for name, row in zip(distances.models, distances.matrix.tolist(), strict=True)]
        title = "Distance between models (Euclidean over α, mean over curves)"
        tables.append(Table("distances", title, ("model", *distances.models), apart, digits=3))
    return tables


# name → the function that makes it, and the tag by which it groups runs
TABLES: dict[str, tuple[Callable[[Sequence[Run], str], list[Table]], str]] = {
    "adr": (adr, ""),
    "roc": (roc, ""),
    "lost": (lost_people, ""),
    "contextual": (contextual, ""),
    "depth": (depth, ""),
    "detectors": (detectors, "architecture"),
    "scenarios": (scenarios, "trained"),
    "alpha": (alpha, ""),
}


def _names(runs: Sequence[Run]) -> list[str]:
    names = [run.record.model.name for run in runs]
    return names if len(set(names)) == len(names) else [str(run.folder) for run in runs]


def _errors(scores: Scores) -> Grid:
    """The grid of object errors over the conditions that means cover."""
    if "E" not in scores:
        raise InvalidOption(f"{scores.folder} has no object errors; give runs of detectors.")
    return scores.covered("E")


def _over_common(grids: Sequence[Grid]) -> tuple[list[Grid], str]:
    """The grids over the conditions that all of them have, and a sentence on those that are left out.

    Means over different conditions would compare the conditions, not the models.
    """
    common = tuple(c for c in grids[0].expected if all(c in grid.expected for grid in grids))
    if not common:
        raise InvalidOption("The runs have no corrupted condition in common, so they cannot be compared.")
    others = dict.fromkeys(str(c) for grid in grids for c in grid.expected if c not in common)
    rest = f" Not in every run, so left out: {first_few([*others])}." if others else ""
    return [Grid(grid.scores, common) for grid in grids], rest


def _reach(run: Run) -> str:
    images = len(run.readable)
    beyond = [rate for rate in REFERENCE_FPPI if images * rate < 1]
    if not beyond:
        return ""
    return (
        f"{images} images cannot show an FPPI below {1 / images:.2g}: {len(beyond)} of the "
        f"{len(REFERENCE_FPPI)} sensitivities ({beyond[0]:.2g} to {beyond[-1]:.2g}) mean no false positive "
        f"at all; {math.ceil(1 / REFERENCE_FPPI[0])} images reach all of them."
    )
