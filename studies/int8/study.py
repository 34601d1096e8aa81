"""Does an eight-bit network lose more in the storm than on clean images, and where?

    python studies/int8/study.py --runs DIR      # quantises and runs, then renews results.json and README.md
    python studies/int8/study.py                 # renews README.md from results.json
    python studies/int8/study.py --check         # only compares them, and fails if they differ

A stopped study continues.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from time import process_time
from typing import Any

import stormproof as sp
from stormproof.corruptions.suites import MICHAELIS

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "docs")]
from parts import from_to, renew, table

NETWORKS = {"street-grid": "AP", "street-plain": "mIoU"}
CONDITIONS = "imagenet-c@3"
GROUPS = {f"by_group_michaelis/{group}": group for group in MICHAELIS}
MEAN, KEPT = "by_severity/3", "rPC_by_severity/3"  # severity 3 is all that is run
TOTALS = {"P": "P", MEAN: "mean under corruption", KEPT: "% of clean"}
NAMES = (*TOTALS, *GROUPS)
Results = Mapping[str, Any]


def measured(runs: Path, scenes: int, workers: int) -> Results:
    """Every twin's scores in points, and its differences from fp32, paired over scenes."""
    from quantise import TWINS, make_twin

    runs.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"scenes": scenes, "networks": {}}
    for network, measure in NETWORKS.items():
        scores, rows = {}, {}
        for twin in TWINS:
            path = make_twin(network, twin, runs)
            run = sp.run(
                f"onnx:{path}", "world:test", conditions=CONDITIONS, limit=scenes,
                out=runs / path.stem, workers=workers,
            )  # fmt: skip
            scores[twin] = run.score(interval=True)
            values = scores[twin].values(measure)
            rows[twin] = {
                "scores": {name: 100 * values[name] for name in NAMES},
                "megabytes": path.stat().st_size / 1e6, "milliseconds": milliseconds(path),
            }  # fmt: skip
            if twin != "fp32":
                apart = (scores[twin] - scores["fp32"])[measure]
                rows[twin]["differences"] = {
                    name: [100 * x for x in (one.interval.estimate, one.interval.low, one.interval.high)]
                    for name, one in apart.items()
                    if name in NAMES or name.endswith("@3")
                }
        found["networks"][network] = {"measure": measure, "twins": rows}
    return found


def milliseconds(path: Path, scenes: int = 20) -> float:
    """CPU time of one scene on one core, decoding included."""
    model, data = sp.open_model(f"onnx:{path}"), sp.open_dataset("world:val", limit=scenes)
    images = [data[index].image for index in range(scenes)]
    model(images[:1])
    started = process_time()
    for image in images:
        model([image])
    return 1000 * (process_time() - started) / scenes


def twins(results: Results) -> str:
    rows = []
    for network, held in results["networks"].items():
        for twin, own in held["twins"].items():
            apart = own.get("differences", {})
            rows.append([
                network, held["measure"], twin,
                *(f"{own['scores'][name]:.1f}" for name in TOTALS),
                *(from_to(*apart[name]) if apart else "" for name in TOTALS),
                f"{own['megabytes']:.1f}", f"{own['milliseconds']:.0f}",
            ])  # fmt: skip
    heads = [*TOTALS.values(), *(f"{label} − fp32" for label in TOTALS.values())]
    head = ["network", "measure", "twin", *heads, "MB", "ms"]
    return table(head, rows)


def groups(results: Results) -> str:
    rows = [
        [network, twin, *(from_to(*own["differences"][name]) for name in ("P", *GROUPS))]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=Path, help="where networks and runs go")
    parser.add_argument("--scenes", type=int, default=60)
    parser.add_argument("--workers", type=int, default=0, help="processes; one per core unless given")
    parser.add_argument("--results", type=Path, default=HERE / "results.json")
    parser.add_argument("--page", type=Path, default=HERE / "README.md", help="whose tables are renewed")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.runs:
        found = measured(options.runs, options.scenes, options.workers)
        options.results.write_text(json.dumps(found, indent=1) + "\n")
    results = json.loads(options.results.read_text())
    made = {"twins": twins(results), "groups": groups(results), "worst": worst(results)}
    renew(options.page, made, check=options.check)


if __name__ == "__main__":
    main()
