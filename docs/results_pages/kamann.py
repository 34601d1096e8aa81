"""Segmentation under kamann's presets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean

from parts import table
from results_pages.runs import (
    DEEPLAB,
    DEEPLAB_STREET,
    Finding,
    ResultsRun,
    as_lists,
    how_made,
)

from stormproof.corruptions.suites import KAMANN, KAMANN_19
from stormproof.metrics.published import published

VOC = ResultsRun("voc", DEEPLAB, "--benchmark voc2012-seg-c --root $DATA/voc2012")
CAMVID = ResultsRun("camvid", DEEPLAB_STREET, "--benchmark camvid-seg-c --root $DATA/camvid")
_STREET = "--data world:test --conditions imagenet-c --limit 40"
CONTEXT = ResultsRun("context", "builtin:street-context", _STREET)
PLAIN = ResultsRun("plain", "builtin:street-plain", _STREET)
RUNS = (VOC, CAMVID, CONTEXT, PLAIN)

INTRODUCTION = """\
# Segmentation under kamann's presets

Made by `make results`. DeepLabv3-MobileNetV2 on {voc} photographs of VOC 2012, DeepLab-EdgeTPU (trained on
Cityscapes) on {camvid} of CamVid, frames of two recordings; mIoU in %, means over severities with noise at
severities 1 to 3, beside the paper's nearest network: ResNet-50 on VOC (Table 3) and MobileNet-V2 on
Cityscapes (Table 1). On so few photographs, the ranks of single corruptions are partly chance.

"""
PAIR = """\
## CD and rCD

CD and rCD compare two networks on the same images: the built-in `street-context` against `street-plain`, on
{images} scenes of `world:test` under `imagenet-c`. mIoU {context:.1f} and {plain:.1f} clean,
{context_mean:.1f} and {plain_mean:.1f} under corruption; CD {cd:.1f}, rCD {rcd:.1f}. One training of each
does not tell whether context helps.

"""
NO_EVIDENCE = "The severities were set to such losses on these images: no evidence."
NOT_TRIED = """\
## Not tested

Ablations and training on corrupted data: on the street, [ablations](../../studies/ablations/README.md) and
[corrupted](../../studies/corrupted/README.md).

"""

Row = Mapping[str, float]


def page() -> str:
    voc, camvid = VOC.percent(), CAMVID.percent()
    theirs = [
        _of(table_, name) for table_, name in (("pascal_voc", "ResNet-50"), ("cityscapes", "MobileNet-V2"))
    ]
    columns = (voc, theirs[0], camvid, theirs[1])
    rows = [
        (name, *(f"{row[name]:.1f}" if name in row else "–" for row in columns))
        for name in ("clean", *KAMANN_19)
    ]
    rows.append(("mPC", f"{voc['mean']:.1f}", "", f"{camvid['mean']:.1f}", ""))
    heads = ("corruption", "VOC, ours", "ResNet-50", "CamVid, ours", "MobileNet-V2, Cityscapes")
    pair = CONTEXT.scores.with_reference(PLAIN.scores)
    context, plain = CONTEXT.percent(), PLAIN.percent()
    return (
        INTRODUCTION.format(voc=VOC.scores.images, camvid=CAMVID.scores.images)
        + table(heads, rows)
        + "\n\n"
        + as_lists(findings(voc, camvid, theirs[1]))
        + PAIR.format(
            images=CONTEXT.scores.images,
            context=context["clean"],
            plain=plain["clean"],
            context_mean=context["mean"],
            plain_mean=plain["mean"],
            cd=100 * pair.total("mIoU", "mCD"),
            rcd=100 * pair.total("mIoU", "mrCD"),
        )
        + NOT_TRIED
        + how_made(
            RUNS,
            "stormproof score runs/results/voc",
            "stormproof score runs/results/camvid",
            "stormproof score runs/results/context --reference runs/results/plain",
        )
    )


def _of(name: str, architecture: str) -> dict[str, float]:
    rows = published("kamann").tables[name]
    found = next(row for row in rows if row["architecture"] == architecture)
    return {key: float(value) for key, value in found.items() if key != "architecture"}


def findings(voc: Row, camvid: Row, paper: Row) -> Iterator[Finding]:
    groups = {name: fmean(camvid[one] for one in group) for name, group in KAMANN.items()}
    noise = groups["noise"]
    others = ", ".join(f"{name} {value:.1f}" for name, value in groups.items() if name != "noise")
    yield Finding(
        f"Noise is the worst category on streets: a mean of {noise:.1f} on CamVid ({others}).",
        noise == min(groups.values()),
    )
    left = [100 * fmean(row[one] for one in KAMANN["noise"]) / row["clean"] for row in (voc, camvid)]
    yield Finding(
        f"Noise is milder on VOC than on streets: it leaves {left[0]:.0f} % of the clean mIoU there, "
        f"{left[1]:.0f} % on CamVid.",
        left[0] > left[1],
    )
    for name, row in (("VOC", voc), ("CamVid", camvid)):
        worst = sorted(KAMANN["weather"], key=row.__getitem__)[:2]
        yield Finding(f"Snow and frost are the worst of weather on {name}.", {*worst} == {"snow", "frost"})
    noises = sorted(KAMANN["noise"], key=voc.__getitem__)
    cost = voc["clean"] - voc["intensity_noise"]
    yield Finding(
        f"Intensity noise is the mildest noise on VOC: it costs {cost:.1f} points (paper 6.8 to 9.8).",
        noises[-1] == "intensity_noise",
    )
    costs = {name: camvid["clean"] - camvid[name] for name in KAMANN_19}
    mild = sorted(costs, key=costs.__getitem__)[:2]
    yield Finding(
        f"PSF blur and geometric distortion cost least of all on streets: {costs['psf_blur']:.1f} points "
        f"(paper 0.6 to 7.5) and {costs['geometric_distortion']:.1f} (paper 4.2 to 9.4). {NO_EVIDENCE}",
        {*mild} == {"psf_blur", "geometric_distortion"},
    )
    cost = voc["clean"] - voc["geometric_distortion"]
    yield Finding(
        f"Geometric distortion costs little on VOC: {cost:.1f} points (paper 2.4 to 3.1). {NO_EVIDENCE}",
        cost < 4,
    )
    for what, names in (("Blur", KAMANN["blur"][:4]), ("Contrast", ("contrast",))):
        ours, theirs = (100 * fmean(row[name] for name in names) / row["clean"] for row in (camvid, paper))
        yield Finding(
            f"{what} costs about as much as in the paper on streets: {ours:.0f} % of the clean mIoU is left "
            f"(paper {theirs:.0f} %). The images are 480 px wide, and the network was trained on another "
            "camera.",
            abs(ours - theirs) < 15,
        )
