"""The figures of the study: every gain, and what training on corruptions changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair
import numpy as np
import study
from study import Networks

from stormproof import corrupt_image
from stormproof.corruptions.suites import BENCHMARK_15, HOLDOUT, KAMANN, KAMANN_19
from stormproof.metrics.quality import snr
from stormproof.report.charts import place_on_circle
from stormproof.world.samples import render

TRAININGS = {"longer": "clean scenes", "corrupted": "clean and corrupted scenes"}
GREY, BLUE = "#8a94a3", "#17407d"  # trained on clean scenes only; on corrupted ones as well
SCENES = 10  # whose signal-to-noise ratio is measured
GAP = 12  # pixels from a radar to the names around it
Spokes = Mapping[str, Sequence[str]]  # the conditions whose mean each spoke of a radar shows


def every_gain(found: Networks) -> Any:
    """Gains in P and mPC over the standard training of as many steps, with intervals."""
    return _shown(*(_gains(found, network) for network in study.NETWORKS))


def _shown(*panels: Any) -> Any:
    return altair.hconcat(*panels).configure_view(stroke="#dddddd").configure(font="sans-serif")


def _gains(found: Networks, network: str) -> Any:
    label, measure = study.NETWORKS[network]
    rows = []
    for cure in study.cures_of(found, network)[1:]:
        for name in ("P", "mPC"):
            more = study.gain(found, network, cure, study.COLUMNS[name])
            low, high = more.interval
            rows.append(
                {"cure": study.named(cure), "number": name, "gain": more.estimate, "low": low, "high": high}
            )
    colours = altair.Scale(domain=["P", "mPC"], range=[GREY, BLUE])
    base = altair.Chart(altair.Data(values=rows)).encode(
        y=altair.Y(
            "cure:N", sort=list(map(study.named, study.LABELS)), title=None, axis=altair.Axis(labelLimit=400)
        ),
        yOffset=altair.YOffset("number:N", sort=["P", "mPC"]),
        color=altair.Color("number:N", scale=colours, title=None),
    )
    title = "points more than the standard training of as many steps"
    return altair.layer(
        altair.Chart(altair.Data(values=[{"zero": 0}])).mark_rule(color="#bbbbbb").encode(x="zero:Q"),
        base.mark_rule(strokeWidth=2).encode(x=altair.X("low:Q", title=title), x2="high:Q"),
        base.mark_point(filled=True, size=45, opacity=1).encode(x=altair.X("gain:Q", title=title)),
    ).properties(width=270, height=430, title=f"{label}, {measure}")


def growing(found: Networks) -> Any:
    """mIoU against severity by category, and under noise against its signal-to-noise ratio (*kamann*, 6)."""
    held = found["plain", "longer", 1].per_condition
    panels = []
    for category, names in KAMANN.items():
        whole = [name for name in names if all(text in held for text in study.grid([name]))]
        if whole:
            points = [(float(s), study.grid(whole, [s])) for s in study.SEVERITIES]
            panels.append(_overlaid(found, points, category, "severity").mark_line(point=True))
    noisy = [text for text in held if text.split("@")[0] in KAMANN["noise"]]
    points = [(ratio, [text]) for text, ratio in _ratios(noisy).items()]
    axis = "signal-to-noise ratio, dB"
    return _shown(*panels, _overlaid(found, points, "noise", axis).mark_point(filled=True, opacity=1))


def _overlaid(found: Networks, points: Sequence[tuple[float, Sequence[str]]], title: str, axis: str) -> Any:
    rows = [
        {"x": x, "mIoU": _mean(found, cure, texts), "trained on": label}
        for cure, label in TRAININGS.items()
        for x, texts in points
    ]
    colours = altair.Scale(domain=list(TRAININGS.values()), range=[GREY, BLUE])
    return (
        altair.Chart(altair.Data(values=rows), title=title)
        .encode(
            x=altair.X("x:Q", title=axis, scale=altair.Scale(zero=False), axis=altair.Axis(tickMinStep=1)),
            y=altair.Y("mIoU:Q", scale=altair.Scale(domain=[0, 80]), title="mIoU"),
            color=altair.Color("trained on:N", scale=colours, legend=altair.Legend(orient="bottom")),
        )
        .properties(width=150, height=170)
    )


def _mean(found: Networks, cure: str, conditions: Sequence[str], seeds: Sequence[int] = study.SEEDS) -> float:
    return study.storms.mean(found["plain", cure, seed].mean(conditions) for seed in seeds).estimate


def _ratios(conditions: Sequence[str]) -> dict[str, float]:
    samples = [render(0, "test", k).sample for k in range(SCENES)]
    return {
        text: float(np.mean([snr(s.image, corrupt_image(s.image, text, image_id=s.id)) for s in samples]))
        for text in conditions
    }


def radar(found: Networks) -> Any:
    """mIoU by corruption after training on four of them, by category after one alone (*kamann*, Fig. 19)."""
    others = [name for name in BENCHMARK_15 if name not in KAMANN_19]
    every = [
        name for names in (*KAMANN.values(), others) for name in names if name in (*BENCHMARK_15, *HOLDOUT)
    ]
    held = found["plain", "longer", 1].per_condition
    by_corruption = {
        name.replace("_", " ") + (" †" if name in HOLDOUT else ""): [
            t for t in study.grid([name]) if t in held
        ]
        for name in every
    }
    by_category = {
        category: study.grid([name for name in names if name in BENCHMARK_15])
        for category, names in KAMANN.items()
        if category in study.CORRUPTED
    }
    alone = [
        _radar(found, f"corrupted-{category}", [1], by_category, title=f"{condition} alone", size=85)
        for category, condition in study.CORRUPTED.items()
    ]
    return _shown(
        _radar(
            found, "corrupted", study.SEEDS, by_corruption, title="all four corruptions marked †", size=190
        ),
        altair.vconcat(altair.hconcat(*alone[:2]), altair.hconcat(*alone[2:])),
    )


def _radar(found: Networks, cure: str, seeds: Sequence[int], spokes: Spokes, *, title: str, size: int) -> Any:
    """A training on corrupted scenes over the one on clean scenes; `size` is the radius in pixels."""
    rows = [
        {"x": name, "y": _mean(found, each, texts, seeds), "series": label}
        for each, label in zip(("longer", cure), TRAININGS.values(), strict=True)
        for name, texts in {"clean": ["clean"], **spokes}.items()
    ]
    room = GAP + 6 * max(map(len, spokes))  # pixels beside the circle, for names
    reach = {"x": 1 + room / size, "y": 1 + 2 * GAP / size}
    scales = {axis: altair.Scale(domain=[-far, far]) for axis, far in reach.items()}
    base = altair.Chart(altair.Data(values=_beside(place_on_circle(rows), GAP / size))).encode(
        x=altair.X("px:Q", axis=None, scale=scales["x"]), y=altair.Y("py:Q", axis=None, scale=scales["y"])
    )
    colours = altair.Scale(domain=list(TRAININGS.values()), range=[GREY, BLUE])
    line = base.transform_filter("isValid(datum.series)").encode(
        color=altair.Color(
            "series:N", scale=colours, title="trained on", legend=altair.Legend(orient="bottom")
        ),
        order="order:Q",
    )
    frame = base.transform_filter("datum.part == 'ring' || datum.part == 'spoke'")
    layers = [
        frame.mark_line(strokeWidth=0.6, color="#cccccc").encode(detail="frame:N", order="order:Q"),
        line.mark_line(strokeWidth=2),
        line.mark_point(filled=True, size=25, opacity=1),
        base.transform_filter("datum.part == 'level'")
        .mark_text(fontSize=9, dx=3, align="left", color="#777777")
        .encode(text="label:N"),
    ]
    layers += [
        base.transform_filter(f"datum.side == '{side}'")
        .mark_text(fontSize=11, align=side)
        .encode(text="label:N")
        for side in ("left", "center", "right")
    ]
    sides = {"width": 2 * size * reach["x"], "height": 2 * size * reach["y"]}
    return altair.layer(*layers).properties(**sides, title=title, view=altair.ViewConfig(stroke=None))


def _beside(rows: Sequence[Mapping[str, Any]], gap: float) -> list[dict[str, Any]]:
    """Names of spokes at a distance from the outer ring, aligned so that they run away from it."""
    found = []
    for row in map(dict, rows):
        if row.get("part") == "name":
            far = np.hypot(row["px"], row["py"]) / (1 + gap)
            row |= {"px": row["px"] / far, "py": row["py"] / far}
            row["side"] = "center" if abs(row["px"]) < 0.1 else ("left" if row["px"] > 0 else "right")
        found.append(row)
    return found
