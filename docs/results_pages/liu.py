"""Camera faults on COCO, plain and with CLAHE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from parts import table
from results_pages.runs import COCO, YOLOX, Finding, ResultsRun, as_lists, how_made

from stormproof.corruptions.suites import LIU
from stormproof.metrics.corruption_error import corruption_matters, mce_change
from stormproof.metrics.published import published

_REST = f"{COCO} --conditions camera --limit 24 --tag architecture=one-stage"
PLAIN = ResultsRun("camera", YOLOX, _REST)
CLAHE = ResultsRun("camera-clahe", YOLOX, f"{_REST} --enhance clahe")
_SCENARIO = "--conditions camera@3 --limit 12 --tag trained=universal"
PHOTOGRAPHS = ResultsRun("camera-coco", YOLOX, f"{COCO} {_SCENARIO}")
STREET = ResultsRun("camera-street", YOLOX, f"--data world:test {_SCENARIO}")
RUNS = (PLAIN, CLAHE, PHOTOGRAPHS, STREET)
FAULTS = tuple(name for group in LIU.values() for name in group)
CALIBRATED = ("cmos_sensor_damage", "transfer_harness_exception", "colour_space_damage")

INTRODUCTION = """\
# Camera faults on COCO

Made by `make results`. YOLOX-nano on the first {images} available photographs of COCO val2017, with sixteen
faults at five severities, plain and with CLAHE. On so few photographs, a point or two means nothing.

"""
NOT_TRIED = """\
## Not tested

BDD100K, other architectures, NLM, and therefore Findings 2.x, 3.x and 4.3. Table 4 is tested with a detector
of photographs and one of the street: [camera](../../studies/camera/README.md#scenarios-crossed).

"""

Row = Mapping[str, float]


@dataclass(frozen=True)
class Paper:
    """CE of the paper's one-stage detectors, in %, by fault and clean."""

    rows: tuple[Row, ...]

    def span(self, name: str) -> tuple[float, float]:
        values = [row[name] for row in self.rows]
        return min(values), max(values)

    def added(self, name: str) -> float:
        """What a fault adds to the clean error, on average."""
        return sum(row[name] - row["clean"] for row in self.rows) / len(self.rows)


def paper() -> Paper:
    rows = [row for row in published("liu").tables["ce"] if row["category"] == "one_stage"]
    # The paper calls its fog what the suite calls camera_fog.
    return Paper(
        tuple(
            {name: float(row["fog" if name == "camera_fog" else name]) for name in ("clean", *FAULTS)}
            for row in rows
        )
    )


def page() -> str:
    plain, clahe, theirs = PLAIN.percent("E"), CLAHE.percent("E"), paper()
    rows = [
        (
            name.replace("_", " "), f"{plain[name]:.1f}", f"{clahe[name]:.1f}",
            "{:.1f} to {:.1f}".format(*theirs.span(name)),
        )
        for name in ("clean", *FAULTS)
    ]  # fmt: skip
    rows.append(("mCE", f"{plain['mean']:.1f}", f"{clahe['mean']:.1f}", ""))
    return (
        INTRODUCTION.format(images=PLAIN.scores.images)
        + table(("CE in %", "plain", "CLAHE", "paper, one-stage detectors"), rows)
        + "\n\n"
        + _flaws()
        + as_lists(findings(plain, clahe, theirs))
        + NOT_TRIED
        + how_made(
            RUNS,
            "stormproof score runs/results/camera runs/results/camera-clahe --table detectors",
            "stormproof score runs/results/camera-clahe --reference runs/results/camera",
            "stormproof score runs/results/camera-coco runs/results/camera-street --table scenarios",
        )
    )


def _flaw(name: str) -> tuple[float, float]:
    """Clean, and the mean under faults, in %."""
    found = PLAIN.percent(name)
    return found["clean"], found["mean"]


def _flaws() -> str:
    objects = ", ".join(
        "{} {:.1f} / {:.1f}".format(name, *_flaw(f"flaws {name}"))
        for name in ("CBWO", "WBCO", "WBWO", "PMD", "MD")
    )
    some, everything = _flaw("images PMD"), _flaw("images MD")
    return (
        f"Flaws as shares of objects in %, clean and as a mean under faults: {objects}. Some objects are "
        f"missed in {some[0]:.0f} % of clean images ({some[1]:.0f} % under faults), all of them in "
        f"{everything[0]:.0f} % ({everything[1]:.0f} %).\n\n"
    )


def findings(plain: Row, clahe: Row, theirs: Paper) -> Iterator[Finding]:
    low, high = theirs.span("clean")
    yield Finding(
        f"The clean error is that of a one-stage detector: {plain['clean']:.1f} % (paper {low} to {high}).",
        low <= plain["clean"] <= high,
    )
    added = {name: plain[name] - plain["clean"] for name in FAULTS}
    least = min(added, key=added.__getitem__)
    yield Finding(
        f"Every fault costs something (1.1); the least is {_words(least)} with {added[least]:+.1f} points.",
        added[least] > 0,
    )
    test = corruption_matters([run.scores.covered("E") for run in (PLAIN, CLAHE)])
    yield Finding(
        f"Faults add {100 * test.increase:.1f} points of error (paper: 10); paired t = {test.paired:.2f} "
        "over both runs.",
        test.paired_p < 0.05 and test.increase > 0,
    )
    yield from _order(added)
    clean, faulty = _flaw("flaws CBWO")
    yield Finding(
        f"A well placed box hardly ever has the wrong class (5.1): {clean:.1f} % of objects clean, "
        f"{faulty:.1f} % under faults.",
        faulty < 5,
    )
    for name in (*CALIBRATED, "bad_pixel_damage"):
        expected = theirs.added(name)
        no_evidence = " Its severities were set by this network's error: no evidence."
        yield Finding(
            f"{_words(name).capitalize()} costs about as much as in the paper: {added[name]:.1f} points "
            f"(paper {expected:.1f}).{no_evidence if name in CALIBRATED else ''}",
            abs(added[name] - expected) < 5,
        )
    yield from _clahe(plain, clahe)
    photographs, street = (100 * mce_change(run.scores.covered("E")) for run in (PHOTOGRAPHS, STREET))
    yield Finding(
        f"Faults add less in the driving scenario (3.1): at severity 3 {photographs:.1f} points on "
        f"{PHOTOGRAPHS.scores.images} photographs of COCO and {street:.1f} on {STREET.scores.images} "
        "renderings of the built-in street, which the network never saw.",
        street < photographs,
    )


def _order(added: Row) -> Iterator[Finding]:
    ranked = sorted(added, key=added.__getitem__)
    for names, found, what in (
        (("bad_pixel_damage", "colour_space_damage"), ranked[-4:], "among the four worst"),
        (
            ("memory_exception", "cfa_interpolation_damage", "white_balance_damage"),
            ranked[:5],
            "among the five mildest",
        ),
    ):
        numbers = [f"{_words(name)} ({added[name]:+.1f})" for name in names]
        text = f"{', '.join(numbers[:-1])} and {numbers[-1]} are {what} faults."
        yield Finding(text[0].upper() + text[1:], {*names} <= {*found})


def _clahe(plain: Row, clahe: Row) -> Iterator[Finding]:
    change = {name: clahe[name] - plain[name] for name in plain}
    yield Finding(f"CLAHE does not help overall (4.1): ΔmCE {change['mean']:+.1f}.", change["mean"] > -1)
    levels = [change["insufficient_black_level"], change["excessive_black_level"]]
    yield Finding(
        f"CLAHE helps a one-stage detector on wrong black levels (Table 5: −0.7, −0.8): ΔCE {levels[0]:+.1f} "
        f"on insufficient and {levels[1]:+.1f} on excessive black level.",
        all(level < 0 for level in levels),
    )
    fog, harness = change["camera_fog"], change["transfer_harness_exception"]
    yield Finding(f"CLAHE helps on fog (4.2): ΔCE {fog:+.1f}.", fog < -1)
    yield Finding(
        f"CLAHE helps on the harness (4.2; in Table 5 +1.0 for one-stage detectors): ΔCE {harness:+.1f}.",
        harness < -1,
    )
    pixels = change["bad_pixel_damage"]
    yield Finding(
        f"CLAHE does harm on bad pixels (Table 5, one-stage detectors: +3.3): ΔCE {pixels:+.1f}.", pixels > 1
    )


def _words(name: str) -> str:
    return name.replace("_", " ")
