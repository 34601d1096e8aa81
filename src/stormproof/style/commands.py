"""`stormproof stylize`: stylized copies of a dataset, with its annotations."""

from __future__ import annotations

from enum import StrEnum
from itertools import product
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.cli import MAKE_DATA, app
from stormproof.cli.corrupt import write_dataset
from stormproof.cli.options import Derived, ImageFormat, Images, Layout, Original, Styles, Workers
from stormproof.core.errors import InvalidOption
from stormproof.core.processes import worker_count

if TYPE_CHECKING:
    from stormproof.tools.derived import Part


class Mode(StrEnum):
    image = "image"
    objects = "objects"
    background = "background"


class Space(StrEnum):
    feature = "feature"
    pixel = "pixel"


@app.command(rich_help_panel=MAKE_DATA)
def stylize(
    dataset: Original,
    out: Derived,
    styles: Styles = "built-in",
    alpha: Annotated[float, typer.Option(help="Strength, 0 to 1.")] = 1.0,
    sequence: Annotated[
        str | None, typer.Option(help="Several strengths: first:last:step, e.g. 0:1:0.1.")
    ] = None,
    mode: Annotated[list[Mode] | None, typer.Option(help="What is stylized; repeatable.")] = None,
    space: Annotated[
        list[Space] | None,
        typer.Option(help="Where strength blends: the network's features (default), or pixels; repeatable."),
    ] = None,
    feather: Annotated[
        float, typer.Option(help="Soften mask edges by this many pixels; 0 keeps them hard.")
    ] = 0.0,
    per_image: Annotated[int, typer.Option("--styles-per-image", help="Different styles per image.")] = 1,
    style_map: Annotated[
        Path | None,
        typer.Option("--map", help="A style map to reuse: a styles.json, or the paper's own JSON."),
    ] = None,
    network: Annotated[
        str, typer.Option(help="built-in, adain:ENCODER,decoder=FILE, magenta:….")
    ] = "built-in",
    layout: Layout = None,
    image_format: ImageFormat = Images.png,
    quality: Annotated[int, typer.Option(help="JPEG quality, 1 to 100.")] = 95,
    as_paper: Annotated[
        bool, typer.Option("--as-paper", help="JPEG quality 75 at every stage, as in the paper.")
    ] = False,
    seed: Annotated[int, typer.Option(help="A different seed gives different styles.")] = 0,
    workers: Workers = 0,
) -> None:
    """Write a stylized dataset: every image repainted in the style of another (AdaIN), annotations kept.

    The style of an image depends on the seed and the image's id, not on order, workers or machine;
    DIR/styles.json records it, and --map reuses it. Several strengths, modes or spaces get a folder each, and
    'stormproof run --copies DIR' reads them. If it is stopped, the same command continues it.

    Examples:

        stormproof stylize coco:instances_val2017.json,images=val2017 --styles paintings --out stylized

        stormproof stylize world:val,count=20 --sequence 0:1:0.1 --mode objects --mode image --out streets

        stormproof stylize coco:val.json --styles kaggle --map style_map_1.json --as-paper --out paper
    """
    from stormproof.core.spec import Spec
    from stormproof.datasets import read_dataset
    from stormproof.tools.derived import Order, choose_format

    if not 0 <= feather < inf:
        raise InvalidOption(f"--feather {feather}: give 0 or more pixels.")
    if per_image < 1:
        raise InvalidOption(f"--styles-per-image {per_image}: give at least 1.")
    if not 1 <= quality <= 100:
        raise InvalidOption(f"--quality {quality}: it must be 1 to 100.")
    opened = read_dataset(dataset)
    chosen = choose_format(opened, layout, Spec.parse(dataset).kind)
    parts = _parts(
        read_sequence(sequence) if sequence else (alpha,),
        tuple(mode or [Mode.image]), tuple(space or [Space.feature]),
        {"styles": styles, "network": network, "stylemap": str(style_map) if style_map else "drawn"},
        feather=feather, per_image=per_image, paper=as_paper,
    )  # fmt: skip
    suffix = ".jpg" if as_paper else f".{image_format.value}"
    order = Order(dataset, parts, chosen, "val", suffix, seed, quality)
    write_dataset(order, out, worker_count(workers), "stylizing")


def read_sequence(text: str) -> tuple[float, ...]:
    """`0:1:0.1` as 0, 0.1 … 1."""
    try:
        first, last, step = map(float, text.split(":"))
    except ValueError:
        raise InvalidOption(f"--sequence {text}: write first:last:step, as 0:1:0.1.") from None
    if not (0 <= first <= last <= 1 and 0.001 <= step <= 1):
        raise InvalidOption(
            f"--sequence {text}: write 0 ≤ first ≤ last ≤ 1 and 0.001 ≤ step ≤ 1, as 0:1:0.1."
        )
    count = round((last - first) / step) + 1
    return tuple(round(first + k * step, 10) for k in range(count) if first + k * step <= last + 1e-9)


def _parts(
    alphas: tuple[float, ...], modes: tuple[Mode, ...], spaces: tuple[Space, ...], named: dict[str, str],
    *, feather: float, per_image: int, paper: bool,
) -> tuple[Part, ...]:  # fmt: skip
    from stormproof.core.condition import Condition
    from stormproof.corruptions.corruption import find
    from stormproof.style.copies import Painted
    from stormproof.tools.derived import Part

    own = {key: value for key, value in named.items() if value != find("style").ladders[key].values[0]}
    several, parts = len(modes) * len(spaces) * len(alphas) > 1, []
    for mode, space, alpha in product(modes, spaces, alphas):
        where = {} if mode == Mode.image else {"on": mode.value}
        condition = Condition.of("style", params={"alpha": alpha, "space": space.value, **where, **own})
        find("style").parameters(condition)
        versions = tuple(Painted(str(condition), k, per_image, feather, paper) for k in range(per_image))
        parts.append(Part(f"{mode.value}-{space.value}-{alpha:g}" if several else "", versions))
    return tuple(parts)
