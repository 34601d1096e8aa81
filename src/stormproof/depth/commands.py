"""`stormproof depth`: depth maps for a dataset, computed once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.cli import MAKE_DATA, app, console
from stormproof.cli.options import Opened
from stormproof.core.errors import InvalidOption, first_few

if TYPE_CHECKING:
    from stormproof.depth.estimate import Estimator


class Origin(StrEnum):
    stereo = "stereo"
    model = "model"
    given = "given"


class ModelAnswer(StrEnum):
    inverse = "inverse"
    metres = "metres"


@app.command(rich_help_panel=MAKE_DATA)
def depth(
    dataset: Opened,
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder for the maps; existing maps are kept.")],
    origin: Annotated[
        Origin,
        typer.Option("--from", help="Stereo pairs, a depth network, or the dataset's own maps with gaps."),
    ] = Origin.stereo,
    max_disparity: Annotated[
        int | None, typer.Option(help="Stereo: search range in pixels; a fifth of the width by default.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="Network: its ONNX file.")] = None,
    model_output: Annotated[
        ModelAnswer, typer.Option(help="Network: its output, metres or inverse depth without a scale.")
    ] = ModelAnswer.inverse,
    nearest: Annotated[float, typer.Option(help="Network without a scale: smallest depth, metres.")] = 2.0,
    farthest: Annotated[float, typer.Option(help="Network without a scale: largest depth, metres.")] = 100.0,
    priors: Annotated[
        Path | None, typer.Option(help="A JSON file of regions with known depth, such as the hood.")
    ] = None,
    sky: Annotated[
        bool, typer.Option("--sky/--no-sky", help="Find the sky in the image and make it infinitely far.")
    ] = True,
    min_confidence: Annotated[
        float, typer.Option(help="List the images whose mean confidence is lower than this, from 0 to 1.")
    ] = 0.3,
) -> None:
    """Compute dense depth for every image of a dataset, for haze and defocus.

    Maps are NPY files in metres, named by sample id, each with its confidence beside it. Run again, the
    command recomputes only images whose pixels, context or options have changed. Open the dataset with
    depth=FOLDER; adding min_confidence=0.3 leaves out images whose depth is mostly guessed.

    Examples:

        stormproof depth images:left,right=right,calib=calib --out depth

        stormproof depth kitti:kitti,depth=kitti/depth_velo --from given --out depth

        stormproof depth coco:val.json,images=val2017 --from model --model midas.onnx --out depth
    """
    from stormproof.datasets import read_dataset
    from stormproof.datasets.depthmaps import MOST_DOUBTFUL, DepthFolder
    from stormproof.depth.estimate import make_depth
    from stormproof.depth.priors import read_priors
    from stormproof.depth.sky import MOST_UNVEILED, unveiled_sky

    if not 0 <= min_confidence <= 1:
        raise InvalidOption(f"--min-confidence {min_confidence}: give a number from 0 to 1.")
    estimator = _estimator(origin, max_disparity, model, model_output, nearest, farthest, sky)
    known = () if priors is None else read_priors(priors)
    opened = read_dataset(dataset)
    folder = DepthFolder(out)
    made = 0
    disputed: list[str] = []
    with console.progress("depth", len(opened)) as progress:
        for i in progress.track(range(len(opened))):
            sample = opened[i]
            made += make_depth(sample, folder, estimator, known, opened.semantic_classes)
            if sky and unveiled_sky(sample.image, folder.read(sample.id)) > MOST_UNVEILED:
                disputed.append(sample.id)
    console.say(
        f"{out}: {made} depth maps made, {len(opened) - made} kept; open the dataset with depth={out}"
    )
    unsure = [name for name in opened.ids if folder.mean_confidence(name) < min_confidence]
    if unsure:
        console.note(
            f"The depth of {len(unsure)} of {len(opened)} images is mostly guessed: {first_few(unsure)}; "
            f"check them, or leave them out with depth={out},min_confidence={min_confidence:g}"
        )
    if disputed:
        console.note(
            f"{len(disputed)} of {len(opened)} images show what looks like sky, but not infinitely far: "
            f"{first_few(disputed)}; haze would leave it clear. Look at them, or make it sky with "
            """--priors FILE, which holds [{"sky": "found", "depth": "inf"}]"""
        )
    doubtful = sum(folder.doubtful(name) > MOST_DOUBTFUL for name in opened.ids)
    if doubtful:
        console.note(
            f"In {doubtful} of {len(opened)} images, depth is a guess in more than {MOST_DOUBTFUL:.0%} of "
            "the pixels; 'stormproof inspect' and runs with haze or defocus will say so"
        )


def _estimator(
    origin: Origin,
    max_disparity: int | None,
    model: Path | None,
    output: ModelAnswer,
    nearest: float,
    farthest: float,
    sky: bool,
) -> Estimator:
    from stormproof.depth.estimate import FromGiven, FromModel, FromStereo
    from stormproof.depth.monocular import DepthModel

    if (model is not None) != (origin is Origin.model):
        raise InvalidOption("Give --model FILE.onnx together with --from model.")
    if max_disparity is not None and origin is not Origin.stereo:
        raise InvalidOption(f"--max-disparity {max_disparity} needs --from stereo.")
    if model is not None:
        return FromModel(DepthModel(model, output is ModelAnswer.metres, nearest, farthest), sky)
    return FromStereo(max_disparity, sky) if origin is Origin.stereo else FromGiven(sky)
