"""Breaking points of real networks on the built-in street, and the page about them.

    python studies/confidence/breaking_points.py find NETWORK CORRUPTION   one search, kept in runs/breaking
    python studies/confidence/breaking_points.py page > docs/breaking-points.md

Needs the networks under ../shared/models; street-grid is built in, and has its own scenes and corruptions.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "studies"))

from stormproof.core.condition import Condition
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.results.breaking import find_breaking_point, parse_axis, parse_requirement

OUT = ROOT / "runs" / "breaking"
NETWORKS = {  # file, and a requirement of about half of what the network reaches on clean images
    "yolox_nano": ("yolox_nano_416_coco", "AP50>=0.2"),
    "ssdlite": ("ssdlite_mobilenetv2_300_coco_w16", "AP50>=0.12"),
    "nanodet": ("nanodet_m_416_coco", "AP50>=0.2"),
}
CORRUPTIONS = {
    "haze": ("haze", "visibility=150..8"),
    "defocus": ("defocus[focus=2]", "kappa=1..40"),
    "gaussian_noise": ("gaussian_noise", None),
    "motion_blur": ("motion_blur", None),
}
STREET_GRID = ("builtin:street-grid", "world:test,count=60")
WEATHER = {"rain": ("rain", "rate=5..300"), "night": ("night", "lux=100..0.5")}  # of street-grid
REQUIRED = {"rain": "AP50>=0.7", "night": "AP50>=0.35"}  # nine tenths and about half of its clean AP50


def find(network: str, corruption: str) -> dict[str, Any]:
    """Search, or give what an earlier search found."""
    from confidence.street import NAME

    kept = OUT / f"{network}-{corruption}.json"
    if network == "street-grid":
        (model, data), require = STREET_GRID, REQUIRED[corruption]
    else:
        file, require = NETWORKS[network]
        card = ROOT / "tests" / "models" / "cards" / f"{file}.yaml"
        model, data = (
            f"onnx:{ROOT.parent / 'shared' / 'models' / file}.onnx,card={card}",
            "confidence.street:street",
        )
    out = OUT / network

    def go(conditions: Any) -> None:
        asked = ["clean", *map(str, conditions)]
        run(make_config({"model": model, "data": data, "out": str(out),
                         "conditions": asked, "engine": "local"}))  # fmt: skip

    measure, threshold = parse_requirement(require)
    axis = parse_axis(*{**CORRUPTIONS, **WEATHER}[corruption])
    found = find_breaking_point(axis, measure, threshold, out=out, run=go).row
    kept.write_text(json.dumps({"network": network, "dataset": NAME, **found}, indent=1))
    return found


def page() -> None:
    from confidence.street import NAME, SCENES

    print(HEAD.format(name=NAME, scenes=SCENES))
    for corruption, (written, over) in {**CORRUPTIONS, **WEATHER}.items():
        if corruption == next(iter(WEATHER)):
            print(RAIN_AND_NIGHT)
        rows = [OUT / f"{network}-{corruption}.json" for network in (*NETWORKS, "street-grid")]
        print(
            f"\n{'###' if corruption in WEATHER else '##'} {written}"
            + (f" over {over}" if over else "")
            + "\n"
        )
        print("| network | clean AP50 | required | breaks at | 95 % interval | in the world | either side |")
        print("|---|---|---|---|---|---|---|")
        for path in (row for row in rows if row.exists()):
            print(_line(json.loads(path.read_text())))


def _line(row: dict[str, Any]) -> str:
    clean = f"{100 * row['clean']:.1f} | {100 * row['threshold']:g}"
    if row["strength"] is None:
        return f"| {row['network']} | {clean} | {row['words']} | | | |"
    at, ends = row["strength"], [row["strength"][k] for k in ("low", "high")]
    span = " – ".join("…" if end is None else f"{end:g}" for end in ends)
    world = "; ".join(row["physical"]["at"][:2])
    bounds = [_bare(row["physical"][k][0]) if row["physical"][k] else "beyond" for k in ("low", "high")]
    sides = _sides(row)
    where = f"{row['over']} {at['at']:g}"
    return f"| {row['network']} | {clean} | {where} | {span} | {world} ({' to '.join(bounds)}) | {sides} |"


def _bare(quantity: str) -> str:
    """A quantity without its name: '48.1 m'."""
    words = quantity.split()
    return " ".join(words[next(i for i, word in enumerate(words) if word[0].isdigit()) :])


def _sides(row: dict[str, Any]) -> str:
    """The runs next to the interval, which show the requirement met and then not met."""
    if not row["confirmed"]:
        return "not confirmed"
    scores = [*row["scores"].items()]
    met = [(text, score) for text, score in scores if score >= row["threshold"]]
    missed = [(text, score) for text, score in scores if score < row["threshold"]]
    pairs = (_beside(row, met, "low"), _beside(row, missed, "high"))
    return ", ".join(f"`{text}` {100 * score:.1f}" for text, score in pairs)


def _beside(row: dict[str, Any], found: list[tuple[str, float]], end: str) -> tuple[str, float]:
    """The nearest run outside the interval; scores are listed from weak to strong."""
    values = [_value(row, text) for text, _ in row["scores"].items()]
    sign = 1 if values[-1] > values[0] else -1
    edge = sign * row["strength"][end]
    if end == "low":
        return [pair for pair in found if sign * _value(row, pair[0]) <= edge][-1]
    return next(pair for pair in found if sign * _value(row, pair[0]) >= edge)


def _value(row: dict[str, Any], text: str) -> float:
    condition = Condition.parse(text)
    return float(condition.severity or dict(condition.params)[row["over"]])


RAIN_AND_NIGHT = """
## Rain in mm/h and night in lux

How much rain, and how little light, can the built-in `street-grid` take? It is a small detector trained on
this very street, so these figures hold for the two together, not for detectors in general. Each took one
command, on 60 scenes; the requirement is nine tenths of the clean AP50 in rain, and about half of it at
night:

```
stormproof breaking-point --model builtin:street-grid --data world:test,count=60 \\
    --corruption rain --over rate=5..300 --require 'AP50>=0.7' --out runs/rain
stormproof breaking-point --model builtin:street-grid --data world:test,count=60 \\
    --corruption night --over lux=100..0.5 --require 'AP50>=0.35' --out runs/night
```

Rain costs this detector little: AP50 falls evenly with the rate, and drops below nine tenths of the clean
AP50 only in a cloudburst. At the end of the range, 300 mm/h, it misses the requirement by less than the
interval, so the breaking point is not confirmed and its upper bound is open. More scenes would narrow it."""

HEAD = """\
# Breaking points

At what visibility does a detector fail? `python studies/confidence/breaking_points.py` made this page. It
runs small networks that others trained on COCO on {scenes} scenes of the built-in street (`{name}`), and
finds the strength at which AP50 falls below a requirement of about half of each network's clean AP50.

`stormproof breaking-point` runs the whole severities first, then the strength where a monotone fit crosses
the requirement, and finally a strength on either side of the 95 % interval. The last column shows AP50 (in %)
on both sides: the requirement is met on one and missed on the other. The interval is for new scenes like
these. Rendered scenes are not photographs: these figures only rank these networks on this street. Ranges and
requirements were chosen after a first search: at AP50 ≥ 0.2, haze by severity and defocus focused at 10 m
never broke YOLOX-nano, and SSDLite was already below 0.2 under the weakest noise.

The commands for one network and two of the tables (`--corruption` may be repeated unless `--over` is needed):

```
stormproof breaking-point --model onnx:yolox_nano_416_coco.onnx --data {name} \\
    --corruption haze --over visibility=150..8 --require 'AP50>=0.2' --out runs/haze
stormproof breaking-point --model onnx:yolox_nano_416_coco.onnx --data {name} \\
    --corruption gaussian_noise --corruption motion_blur --require 'AP50>=0.2' --out runs/noise-and-blur
```"""


if __name__ == "__main__":
    if sys.argv[1:2] == ["find"]:
        print(find(*sys.argv[2:]))
    else:
        page()
