"""`stormproof people`: what a run says about person detection, as *pezzementi* reports it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from stormproof.cli import app, console
from stormproof.cli.options import Data, Run, Runs

if TYPE_CHECKING:
    from stormproof.results.people import PeopleRun

people = typer.Typer(
    help="Person detection: rates at fixed sensitivities, curves, worst images, contextual from simple.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.add_typer(people, name="people")


@people.command()
def adr(
    runs: Runs,
    data: Data = None,
) -> None:
    """Print the average detection rate of each run under each condition, and relative to clean (Table IV).

    Sensitivities are fixed on each run's clean images. The lowest cannot be told apart on few images.

    Examples:

        stormproof people adr runs/yolox runs/ssdlite
    """
    from stormproof.results.people import open_people

    opened = [open_people(run, data=data) for run in runs]
    models = [run.record.model.name for run in opened]
    table = console.table("ADR, and relative to clean (in %)", ["condition"], models)
    for text in dict.fromkeys(text for run in opened for text in run.found):
        table.add_row(Text(text), *(_adr_cell(run, text) for run in opened))
    console.out.print(table)
    _note_reach(opened[0])


def _adr_cell(run: PeopleRun, text: str) -> str:
    if text not in run.found:
        return ""
    rates, clean = run.rates(text), run.rates("clean")
    beside = rates.normalised(clean)
    return f"{100 * rates.adr:.1f}" + ("" if math.isnan(beside) else f"  {100 * beside:.0f}")


@people.command()
def curves(
    run: Run,
    condition: Annotated[list[str] | None, typer.Option(help="Only this condition; repeatable.")] = None,
    iou: Annotated[float, typer.Option(help="The IoU at which a person counts as found.")] = 0.5,
    data: Data = None,
) -> None:
    """Print detection rate and FPPI at the nine sensitivities fixed on clean images (Fig. 5).

    Examples:

        stormproof people curves runs/yolox --condition clean --condition 'gaussian_blur\\[sigma=3]'
    """
    from stormproof.metrics.roc import REFERENCE_FPPI
    from stormproof.results.people import open_people

    opened = open_people(run, data=data)
    clean = opened.curve("clean", iou=iou)
    numbers = ("FPPI when clean", "rate (%)", "FPPI reached")
    table = console.table(f"Detection rate at fixed sensitivities, IoU {iou:g}", ["condition"], numbers)
    for text in condition or list(opened.found):
        curve = opened.curve(text, iou=iou)
        for rate in REFERENCE_FPPI:
            found, fppi = curve.at(clean.threshold_at(rate))
            reach = "" if opened.truths.images * rate >= 1 else " beyond reach"
            table.add_row(Text(text), f"{rate:.2g}{reach}", f"{100 * found:.1f}", f"{fppi:.2g}")
    console.out.print(table)
    _note_reach(opened)


@people.command()
def worst(
    run: Run,
    condition: Annotated[str, typer.Option(help="The condition to compare with clean.")],
    count: Annotated[int, typer.Option(help="How many images.")] = 10,
    data: Data = None,
) -> None:
    """List the images in which finding a person becomes hardest, by the FPPI it takes (Fig. 6).

    Examples:

        stormproof people worst runs/yolox --condition 'gaussian_blur\\[sigma=3]' --count 5
    """
    from stormproof.results.people import open_people

    numbers = ("FPPI clean", "FPPI now", "orders of magnitude")
    table = console.table(f"Hardest hit under {condition}", ["image"], numbers)
    for row in open_people(run, data=data).worst(condition, count=count):
        lost = math.isinf(row.after)
        after, orders = ("never found", "") if lost else (f"{row.after:.3g}", f"{row.orders:.1f}")
        table.add_row(row.id, f"{row.before:.3g}", after, orders)
    console.out.print(table)


@people.command()
def predict(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Runs of several systems.")],
    data: Data = None,
) -> None:
    """Predict each system's ADR under defocus and haze from that under blur and blending (Figs. 7 and 8).

    Each run must hold clean, simple and contextual conditions: --conditions mutators,contextual. Each system
    is predicted from a fit on all the others.

    Examples:

        stormproof people predict runs/yolox runs/ssdlite runs/efficientdet
    """
    from stormproof.metrics.prediction import PAIRS
    from stormproof.results.people import open_people, predict_contextual

    for name, told in predict_contextual([open_people(run, data=data) for run in runs]).items():
        title = f"{name} from {PAIRS[name]}: relative ADR observed → predicted (in %), R² {told.r2:.2f}"
        systems = [s if math.isnan(r2) else f"{s}, R² {r2:.2f}" for s, r2 in told.r2_by_system.items()]
        table = console.table(title, ["condition"], systems)
        table.add_column("weights", overflow="fold")
        for j, text in enumerate(told.contextual):
            pairs = zip(told.observed[:, j], told.predicted[:, j], strict=True)
            weights = sorted(zip(told.overall[j], told.simple, strict=True), reverse=True)
            some = ", ".join(f"{weight:.2f} {simple}" for weight, simple in weights[:3] if weight > 0.005)
            table.add_row(Text(text), *(f"{100 * a:.0f} → {100 * b:.0f}" for a, b in pairs), Text(some))
        console.out.print(table)


@people.command()
def histogram(run: Run, data: Data = None) -> None:
    """Print how much blur and blending haze and defocus put inside people's boxes (Fig. 8).

    Each person's pixels go to the nearest magnitude of the simple mutator; every person counts once. Beside
    the weights of 'people predict' this tells whether the depth of people alone explains a prediction.

    Examples:

        stormproof people histogram runs/yolox
    """
    from stormproof.core.condition import Condition
    from stormproof.metrics.prediction import PAIRS
    from stormproof.results.people import open_people
    from stormproof.results.people_depth import histograms, levels

    found = histograms(open_people(run, data=data))
    for name, simple in PAIRS.items():
        rows = {text: row for text, row in found.items() if Condition.parse(text).corruption == name}
        if not rows:
            continue
        sign = "σ" if name == "defocus" else "α"
        title = f"{simple} inside people's boxes under {name} (share in %)"
        table = console.table(title, ["condition"], [f"{sign} {level:g}" for level in levels(name)])
        for text, row in rows.items():
            table.add_row(Text(text), *(f"{100 * share:.0f}" for share in row))
        console.out.print(table)


def _note_reach(run: PeopleRun) -> None:
    from stormproof.metrics.roc import REFERENCE_FPPI

    images = run.truths.images
    beyond = [rate for rate in REFERENCE_FPPI if images * rate < 1]
    if beyond:
        console.note(
            f"{images} images cannot show an FPPI below {1 / images:.2g}: {len(beyond)} of the "
            f"{len(REFERENCE_FPPI)} sensitivities ({beyond[0]:.2g} to {beyond[-1]:.2g}) mean "
            f"no false positive at all; {math.ceil(1 / REFERENCE_FPPI[0])} images reach all of them."
        )
