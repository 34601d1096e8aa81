"""Write docs/results/: five real networks on real photographs under imagenet-c.

python docs/make_results.py

Needs the networks and photographs under ../shared. Runs go to runs/results and continue where they were.
"""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from stormproof.results.run import Run as RunFolder
from stormproof.results.scores import Scores
from stormproof.results.tables import as_csv

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
RESULTS = ROOT / "docs" / "results"

COCO = "coco:$DATA/coco/instances_val2017.json,images=$DATA/coco/val2017"


@dataclass(frozen=True)
class Run:
    name: str
    network: str
    card: str
    data: str
    photographs: str

    def command(self, verb: str) -> str:
        if verb == "score":
            return f"stormproof score runs/results/{self.name}"
        model = f"onnx:$MODELS/{self.network}.onnx,card=$CARDS/{self.card}.yaml"
        where = f"--conditions imagenet-c --limit 40 --out runs/results/{self.name}"
        return f"stormproof run --model {model} --data {self.data} {where}"


RUNS = (
    Run("yolox_nano", "yolox_nano_416_coco", "yolox_nano_416_coco", COCO, "40 of COCO val2017"),
    Run(
        "ssdlite",
        "ssdlite_mobilenetv2_300_coco_w16",
        "ssdlite_mobilenetv2_300_coco_w16",
        COCO,
        "40 of COCO val2017",
    ),
    Run(
        "efficientdet_lite0",
        "efficientdet_lite0_coco_qdq",
        "efficientdet_lite0_coco_qdq",
        COCO,
        "40 of COCO val2017",
    ),
    Run(
        "deeplab_voc",
        "deeplabv3_mnv2_513_voc_qdq",
        "deeplabv3_mnv2_513_voc_qdq",
        "voc-seg:$DATA/voc2012",
        "all 29 at hand of VOC 2012",
    ),
    Run(
        "deeplab_cityscapes",
        "deeplab_edgetpuslim_513_cityscapes_qdq",
        "deeplab_cityscapes_on_camvid",
        "camvid:$DATA/camvid",
        "all 24 at hand of CamVid",
    ),
)

COLUMNS = ("measure", "condition", "corruption", "severity", "value")
INTRODUCTION = """\
# Five networks under imagenet-c

Made by `python docs/make_results.py`. Small networks that others trained, on a few dozen photographs: enough
to see the machinery work, too few to rank models by a point or two. All values in %. The other papers:
[kamann](kamann.md), [liu](liu.md), [pezzementi](pezzementi.md).

"""


def shell(command: str) -> None:
    """Run a command of the page here, with its places filled in."""
    places = {
        "$MODELS": SHARED / "models",
        "$DATA": SHARED / "data",
        "$CARDS": ROOT / "tests" / "models" / "cards",
    }
    for key, place in places.items():
        command = command.replace(key, str(place))
    _, *words = command.split()
    subprocess.run([str(Path(sys.executable).with_name("stormproof")), *words], check=True, cwd=ROOT)


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def by_corruption(grid: dict[str, float]) -> dict[str, float]:
    names = dict.fromkeys(text.split("@")[0] for text in grid if text != "clean")
    return {name: fmean(grid[f"{name}@{s}"] for s in range(1, 6)) for name in names}


def keep_scores(scores: Scores, target: Path) -> None:
    """Every measure of every condition; the rows of single classes would be ten times as many."""
    rows = [row for row in csv.DictReader(io.StringIO(as_csv(scores))) if not row["class"]]
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    RESULTS.mkdir(exist_ok=True)
    scores: dict[str, Scores] = {}
    for run in RUNS:
        for verb in ("run", "score"):
            shell(run.command(verb))
        scores[run.name] = RunFolder(ROOT / "runs" / "results" / run.name).score()
        keep_scores(scores[run.name], RESULTS / f"{run.name}.csv")
    text = INTRODUCTION + "| network | photographs | measure | P | mPC | rPC |\n|---|---|---|---|---|---|\n"
    for run in RUNS:
        found = scores[run.name]
        grid = found.cells[found.headline]
        mpc = fmean(by_corruption(grid).values())
        numbers = " | ".join(map(percent, (grid["clean"], mpc, mpc / grid["clean"])))
        text += f"| {run.name} | {run.photographs} | {found.headline} | {numbers} |\n"
    text += "\nMean over severities of each corruption:\n\n| corruption | "
    text += " | ".join(run.name for run in RUNS) + " |\n|---" + "|---" * len(RUNS) + "|\n"
    means = [by_corruption(found.cells[found.headline]) for found in scores.values()]
    for name in means[0]:
        text += f"| {name} | " + " | ".join(percent(mean[name]) for mean in means) + " |\n"
    links = ", ".join(f"[{run.name}]({run.name}.csv)" for run in RUNS)
    commands = "\n".join(run.command(verb) for run in RUNS for verb in ("run", "score"))
    text += f"\nEvery measure of every condition: {links}.\n\n## The commands\n\n```\n{commands}\n```\n"
    (RESULTS / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
