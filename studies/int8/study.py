"""Does an eight-bit network lose more in the storm than on clean images, and where?

    python studies/int8/study.py --runs DIR      # quantises and runs, then renews results.json and README.md
    python studies/int8/study.py --runs DIR --networks street-plain     # renews the numbers of one network
    python studies/int8/study.py                 # renews README.md from results.json
    python studies/int8/study.py --check         # only compares them, and fails if they differ

A stopped study continues.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import stormproof as sp
from stormproof.corruptions.suites import MICHAELIS

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "docs")]
from parts import from_to, renew, table

NETWORKS = {
    "street-grid": "AP", "street-grid-combined": "AP", "street-grid-stylized": "AP", "street-centre": "AP",
    "street-masks": "mask AP", "street-plain": "mIoU", "street-context": "mIoU",
}  # fmt: skip
FULL = ("street-grid", "street-plain")  # with 60 scenes; the others have 20, to save time
SCENES = {name: 60 if name in FULL else 20 for name in NETWORKS}
CONDITIONS = "imagenet-c@3"
GROUPS = {f"by_group_michaelis/{group}": group for group in MICHAELIS}
MEAN, KEPT = "by_severity/3", "rPC_by_severity/3"  # severity 3 is all that is run
TOTALS = {"P": "P", MEAN: "mean under corruption", KEPT: "% of clean"}
NAMES = (*TOTALS, *GROUPS)
TESTS = {
    "static, float head": "head in float32",
    "static, bright": "calibrated on bright scenes †",
}
SHOWN = {"P": "clean", "brightness@3": "brightness", "snow@3": "snow", MEAN: TOTALS[MEAN]}
EARLIER = "earlier processor"  # where results.json keeps what files of the same making gave elsewhere
Results = Mapping[str, Any]


def measured(network: str, runs: Path, scenes: int, workers: int) -> Results:
    """Every twin's scores in points, and its differences from fp32, paired over scenes."""
    from quantise import make_twin, twins_of

    measure, scores, rows = NETWORKS[network], {}, {}
    paths = {twin: make_twin(network, twin, runs) for twin in twins_of(network)}
    for twin, path in paths.items():
        run = sp.run(
            f"onnx:{path}", "world:test", conditions=CONDITIONS, limit=scenes,
            out=runs / path.stem, workers=workers,
        )  # fmt: skip
        scores[twin] = run.score(interval=True)
        values = scores[twin].values(measure)
        rows[twin] = {
            "scores": {name: _points(values[name]) for name in NAMES},
            "megabytes": round(path.stat().st_size / 1e6, 3),
        }
        if twin != "fp32":
            rows[twin]["differences"] = {
                name: [_points(x) for x in (one.interval.estimate, one.interval.low, one.interval.high)]
                for name, one in (scores[twin] - scores["fp32"])[measure].items()
                if name in NAMES or name.endswith("@3")
            }
    for twin, spent in milliseconds(paths).items():
        rows[twin]["milliseconds"] = spent
    return {"measure": measure, "scenes": scenes, "twins": rows}


def _points(share: float) -> float | None:
    """In %; None where the clean score is 0, so that no share of it is left."""
    return round(100 * share, 3) if math.isfinite(share) else None


def _possible(own: Mapping[str, Any], name: str) -> list[float]:
    """A difference and its interval; a twin that finds nothing anywhere cannot be better than another."""
    estimate, low, high = own["differences"][name]
    return [estimate, low, high if own["scores"]["by_severity/3"] else min(high, 0.0)]


def _apart(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return from_to(*known) if len(known) == len(values) else "–"


def milliseconds(paths: Mapping[str, Path], scenes: int = 20) -> dict[str, float]:
    """CPU time of one scene on one core, decoding included: the median, the twins taking turns."""
    models = {twin: sp.open_model(f"onnx:{path}") for twin, path in paths.items()}
    data = sp.open_dataset("world:val", limit=scenes)
    spent: dict[str, list[float]] = {twin: [] for twin in paths}
    for index in range(scenes):
        image = data[index].image
        for twin, model in models.items():
            started = process_time()
            model([image])
            spent[twin].append(1000 * (process_time() - started))
    return {twin: round(median(times), 1) for twin, times in spent.items()}


def twins(results: Results) -> str:
    rows = []
    for network, held in results["networks"].items():
        for twin, own in held["twins"].items():
            apart = own.get("differences", {})
            rows.append([
                network, str(held["scenes"]), held["measure"], twin,
                *("–" if (score := own["scores"][name]) is None else f"{score:.1f}" for name in TOTALS),
                *(_apart(apart[name]) if apart else "" for name in TOTALS),
                f"{own['megabytes']:.1f}", f"{own['milliseconds']:.0f}",
            ])  # fmt: skip
    heads = [*TOTALS.values(), *(f"{label} − fp32" for label in TOTALS.values())]
    head = ["network", "scenes", "measure", "twin", *heads, "MB", "ms"]
    return table(head, rows)


def groups(results: Results) -> str:
    rows = [
        [network, twin, *(from_to(*_possible(own, name)) for name in ("P", *GROUPS))]
        for network, held in results["networks"].items()
        for twin, own in held["twins"].items()
        if twin != "fp32"
    ]
    return table(["network", "twin", "clean", *GROUPS.values()], rows)


def worst(results: Results) -> str:
    """The three corruptions under which each twin loses most against fp32."""
    rows = []
    for network, held in results["networks"].items():
        for twin, own in held["twins"].items():
            each = {
                name.removesuffix("@3").replace("_", " "): value
                for name, value in own.get("differences", {}).items()
                if name.endswith("@3")
            }
            most = sorted(each, key=lambda name: each[name][0])[:3]
            if most:
                rows.append([network, twin, *(f"{name} {from_to(*each[name])}" for name in most)])
    return table(["network", "twin", "most", "second", "third"], rows)


def causes(results: Results) -> str:
    """What the tests of a cause change: a head in float32, and a calibration that has seen bright images."""
    rows = []
    for network, held in results["networks"].items():
        for twin, own in held["twins"].items():
            if twin in TESTS or (twin == "static" and held["twins"].keys() & TESTS.keys()):
                cells = [from_to(*own["differences"][name]) for name in SHOWN]
                rows.append([network, TESTS.get(twin, twin), *cells, f"{own['milliseconds']:.0f}"])
    return table(["network", "twin", *SHOWN.values(), "ms"], rows)


def processors(results: Results) -> str:
    """The same twins on a processor with VNNI and, measured earlier, on another: minus fp32."""
    rows = []
    for network, held in results.get(EARLIER, {}).items():
        both = {"earlier": held["twins"], "with VNNI": results["networks"][network]["twins"]}
        for twin in ("static", "static, corrupted"):
            for label, own in both.items():
                if twin in own:
                    cells = [from_to(*own[twin]["differences"][name]) for name in SHOWN]
                    rows.append([network, twin, label, *cells])
    return table(["network", "twin", "processor", *SHOWN.values()], rows)


def emulated() -> str:
    """mIoU of static twins on a processor with VNNI, and on one without it that valgrind emulates."""
    found = json.loads((HERE / "processor.json").read_text())
    names = next(iter(found.values()))
    rows = [[*name.split("/"), *(f"{scores[name]:.1f}" for scores in found.values())] for name in names]
    return table(["twin of street-plain", "condition", *found], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=Path, help="where networks and runs go")
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS), choices=NETWORKS)
    parser.add_argument("--scenes", type=int, help="of each network, instead of those of the page")
    parser.add_argument("--workers", type=int, default=0, help="processes; one per core unless given")
    parser.add_argument("--results", type=Path, default=HERE / "results.json")
    parser.add_argument("--page", type=Path, default=HERE / "README.md", help="whose tables are renewed")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.runs:
        options.runs.mkdir(parents=True, exist_ok=True)
        for network in options.networks:
            scenes = options.scenes or SCENES[network]
            keep(options.results, network, measured(network, options.runs, scenes, options.workers))
    results = json.loads(options.results.read_text())
    made = {part.__name__: part(results) for part in (twins, groups, worst, causes, processors)}
    made["emulated"] = emulated()
    renew(options.page, made, check=options.check)


def keep(path: Path, network: str, found: Results) -> None:
    """Put the numbers of one network into the file, three to a line where they are an interval."""
    held = json.loads(path.read_text()) if path.exists() else {}
    networks = {**held.get("networks", {}), network: found}
    held["networks"] = {name: networks[name] for name in NETWORKS if name in networks}
    text = json.dumps(held, indent=1)
    path.write_text(re.sub(r"\[\s+(\S+)\s+(\S+)\s+(\S+)\s+\]", r"[\1 \2 \3]", text) + "\n")


if __name__ == "__main__":
    main()
