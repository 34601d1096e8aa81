"""The figures of the study: every gain, and what corrupted training changes as corruptions grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair
import numpy as np
import study
from study import Networks

from stormproof import corrupt_image
from stormproof.corruptions.suites import KAMANN
from stormproof.metrics.quality import snr
from stormproof.world.samples import render

TRAININGS = {"longer": "clean scenes", "corrupted": "clean and corrupted scenes"}
SCENES = 10  # whose signal-to-noise ratio is measured


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
    colours = altair.Scale(domain=["P", "mPC"], range=["#8a94a3", "#17407d"])
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
    held = found["plain", "longer", 1].cells
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
        {"x": x, "mIoU": _both(found, cure, texts), "trained on": label}
        for cure, label in TRAININGS.items()
        for x, texts in points
    ]
    colours = altair.Scale(domain=list(TRAININGS.values()), range=["#8a94a3", "#17407d"])
    return (
        altair.Chart(altair.Data(values=rows), title=title)
        .encode(
            x=altair.X("x:Q", title=axis, scale=altair.Scale(zero=False), axis=altair.Axis(tickMinStep=1)),
            y=altair.Y("mIoU:Q", scale=altair.Scale(domain=[0, 80]), title="mIoU"),
            color=altair.Color("trained on:N", scale=colours, legend=altair.Legend(orient="bottom")),
        )
        .properties(width=150, height=170)
    )


def _both(found: Networks, cure: str, conditions: Sequence[str]) -> float:
    return study.storms.mean(found["plain", cure, seed].mean(conditions) for seed in study.SEEDS).estimate


def _ratios(conditions: Sequence[str]) -> dict[str, float]:
    samples = [render(0, "test", k).sample for k in range(SCENES)]
    return {
        text: float(np.mean([snr(s.image, corrupt_image(s.image, text, image_id=s.id)) for s in samples]))
        for text in conditions
    }
