"""`stormproof depth`: depth maps for a dataset, computed once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.cli import app, console
from stormproof.errors import InvalidOption

if TYPE_CHECKING:
    from stormproof.context.estimate import Estimator


class Origin(StrEnum):
    stereo = "stereo"
    model = "model"
    given = "given"


class Answer(StrEnum):
    inverse = "inverse"
    metres = "metres"


@app.command()
def depth(
    dataset: Annotated[str, typer.Argument(help="What to open, as kind:path[,option=value…].")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder for the maps; made ones are kept.")],
    origin: Annotated[
        Origin,
        typer.Option("--from", help="A stereo pair, a depth network, or the dataset's own map with gaps."),
    ] = Origin.stereo,
    max_disparity: Annotated[
        int | None, typer.Option(help="Stereo: pixels to search; a fifth of the width when not given.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="Network: its ONNX file.")] = None,
    model_output: Annotated[
        Answer, typer.Option(help="Network: what it answers, metres or inverse depth without a scale.")
    ] = Answer.inverse,
    nearest: Annotated[float, typer.Option(help="Network without a scale: metres to the nearest.")] = 2.0,
    farthest: Annotated[float, typer.Option(help="Network without a scale: metres to the farthest.")] = 100.0,
    priors: Annotated[
        Path | None, typer.Option(help="JSON with regions of known depth: the hood, the sky.")
    ] = None,
) -> None:
    """Compute dense depth for every image of a dataset, for haze and defocus.

    Maps are NPY files in metres, named by sample id. Run again, only images whose pixels, context or
    options have changed are made anew. Use the folder as the dataset's depth option.

    Examples:

        stormproof depth images:left,right=right,calib=calib --out depth

        stormproof depth kitti:kitti,depth=kitti/depth_velo --from given --out depth

        stormproof depth coco:val.json,images=val2017 --from model --model midas.onnx --out depth
    """
    from stormproof.context.cache import DepthFolder, make_depth
    from stormproof.context.priors import Priors, read_priors
    from stormproof.datasets import open_dataset

    estimator = _estimator(origin, max_disparity, model, str(model_output), nearest, farthest)
    known = Priors() if priors is None else read_priors(priors)
    opened = open_dataset(dataset)
    folder = DepthFolder(out)
    made = 0
    with console.progress("images") as bar:
        for i in bar.track(range(len(opened)), description="depth"):
            made += make_depth(opened[i], folder, estimator, known, opened.semantic_classes)
    console.say(
        f"{out}: {made} depth maps made, {len(opened) - made} kept; open the dataset with depth={out}"
    )


def _estimator(
    origin: Origin,
    max_disparity: int | None,
    model: Path | None,
    output: str,
    nearest: float,
    farthest: float,
) -> Estimator:
    from stormproof.context.estimate import FromGiven, FromModel, FromStereo
    from stormproof.context.monocular import DepthModel
    from stormproof.context.stereo import Matching

    if (model is not None) != (origin is Origin.model):
        raise InvalidOption("--model FILE.onnx and --from model go together.")
    if max_disparity is not None and origin is not Origin.stereo:
        raise InvalidOption(f"--max-disparity {max_disparity} goes with --from stereo.")
    if model is not None:
        return FromModel(DepthModel(model, output, nearest, farthest))
    return FromStereo(Matching(max_disparity)) if origin is Origin.stereo else FromGiven()
