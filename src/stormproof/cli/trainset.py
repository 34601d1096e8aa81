"""`stormproof trainset`: training sets of clean, stylized or corrupted images."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from stormproof.cli import app
from stormproof.cli.corrupt import write_dataset
from stormproof.cli.options import Derived, ImageFormat, Images, Layout, Original, Styles, Workers
from stormproof.core.processes import worker_count


class Mix(StrEnum):
    standard = "standard"
    stylized = "stylized"
    combined = "combined"
    corrupted = "corrupted"


@app.command()
def trainset(
    dataset: Original,
    out: Derived,
    mix: Annotated[Mix, typer.Option(help="What the training set consists of.")] = Mix.combined,
    corruption: Annotated[
        str | None, typer.Option("--condition", help="With --mix corrupted: the condition, e.g. fog@3.")
    ] = None,
    styles: Styles = "built-in",
    alpha: Annotated[float, typer.Option(help="Strength of stylization, 0 to 1.")] = 1.0,
    network: Annotated[str, typer.Option(help="The style network.")] = "built-in",
    layout: Layout = None,
    split: Annotated[str, typer.Option(help="The name of the split.")] = "train",
    image_format: ImageFormat = Images.png,
    seed: Annotated[int, typer.Option(help="A different seed gives different styles and noise.")] = 0,
    workers: Workers = 0,
) -> None:
    """Write a training set that a trainer can use directly.

    standard is the unchanged dataset; stylized has every image in the style of another; combined has both
    (michaelis 2019); corrupted has every image clean and under one condition (kamann 2020, section 6).

    Examples:

        stormproof trainset coco:instances_train2017.json,images=train2017 --mix combined --out train-combined

        stormproof trainset world:train,count=900 --mix corrupted --condition fog@3 --layout yolo --out foggy
    """
    from stormproof.core.spec import Spec
    from stormproof.datasets import open_dataset
    from stormproof.tools.derived import Order, Part, choose_format
    from stormproof.tools.mixes import versions_of

    versions = versions_of(mix.value, condition=corruption, styles=styles, alpha=alpha, network=network)
    chosen = choose_format(open_dataset(dataset), layout, Spec.parse(dataset).kind)
    order = Order(dataset, (Part("", versions),), chosen, split, f".{image_format.value}", seed)
    write_dataset(order, out, worker_count(workers), mix.value)
