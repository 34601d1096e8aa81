"""The runs behind docs/results: their commands, their scores, and the versions behind the numbers."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from stormproof.corruptions.corruption import recipe_versions
from stormproof.datasets import read_dataset
from stormproof.models.builtin import find_builtin
from stormproof.results.run import Run as RunFolder
from stormproof.results.scores import Scores
from stormproof.results.store.record import RunRecord, read_record

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
KEPT = "runs/results"  # where runs are, relative to ROOT
PLACES = {
    "$MODELS": ROOT.parent / "shared" / "models",
    "$DATA": ROOT.parent / "shared" / "data",
    "$CARDS": ROOT / "tests" / "models" / "cards",
}
BUILTIN = "builtin:"
COCO = "--data coco:$DATA/coco/instances_val2017.json,images=$DATA/coco/val2017"


def onnx(network: str, card: str = "") -> str:
    """The spec of a network under $MODELS."""
    return f"onnx:$MODELS/{network}.onnx,card=$CARDS/{card or network}.yaml"


YOLOX = onnx("yolox_nano_416_coco")
SSDLITE = onnx("ssdlite_mobilenetv2_300_coco_w16")
EFFICIENTDET = onnx("efficientdet_lite0_coco_qdq")
DEEPLAB = onnx("deeplabv3_mnv2_513_voc_qdq")
DEEPLAB_STREET = onnx("deeplab_edgetpuslim_513_cityscapes_qdq", "deeplab_cityscapes_on_camvid")


@dataclass(frozen=True)
class ResultsRun:
    """A run of the pages; `rest` is its command after the model."""

    name: str
    model: str
    rest: str

    @property
    def folder(self) -> Path:
        return ROOT / KEPT / self.name

    @property
    def command(self) -> str:
        return f"stormproof run --model {self.model} {self.rest} --out {KEPT}/{self.name}"

    def make(self) -> None:
        """Run it, or continue it; a run made with older recipes is started again."""
        if (self.folder / "run.json").exists():
            held = read_record(self.folder)
            if held.recipes != recipe_versions(held.conditions):
                shutil.rmtree(self.folder)
        shell(self.command)

    @cached_property
    def opened(self) -> RunFolder:
        return RunFolder(self.folder)

    @cached_property
    def scores(self) -> Scores:
        return self.opened.score()

    def percent(self, measure: str | None = None) -> dict[str, float]:
        """Clean, the mean of each corruption over its severities, and their mean; all in %."""
        chosen = measure or self.scores.headline
        means = {"clean": self.scores.score(chosen), **self.scores.by_corruption(chosen)}
        return {
            name: 100 * value for name, value in {**means, "mean": float(self.scores.mean(chosen))}.items()
        }


def shell(command: str) -> None:
    """Run a command of a page here, with its places filled in."""
    _, *words = shlex.split(filled(command))
    subprocess.run([str(Path(sys.executable).with_name("stormproof")), *words], check=True, cwd=ROOT)


def filled(text: str) -> str:
    """A command or spec with its places filled in."""
    for key, place in PLACES.items():
        text = text.replace(key, str(place))
    return text


def _emptied(text: str) -> str:
    for key, place in PLACES.items():
        text = text.replace(str(place), key)
    return text


# The versions behind a page


def how_made(runs: Sequence[ResultsRun], *then: str, first: Sequence[str] = ()) -> str:
    """The end of a page: the versions behind it, and the commands before, of and after its runs."""
    lines = "".join(f"{line}\n" for line in (*first, *(run.command for run in runs), *then))
    return f"{made_with(runs)}\n## The commands\n\n```\n{lines}```\n"


def made_with(runs: Iterable[ResultsRun]) -> str:
    """The versions behind a page: recipes, networks and images, whatever the commit."""
    records = [read_record(run.folder) for run in runs]
    recipes = {name: version for record in records for name, version in record.recipes.items()}
    rows = [("recipes", ", ".join(f"{name} {version}" for name, version in sorted(recipes.items())))]
    rows += [(f"network `{name}`", f"SHA-256 `{network_hash(name)}`") for name in _networks(records)]
    rows += [(f"images `{data}`", f"fingerprint `{images_hash(data)}`") for data in _datasets(records)]
    lines = "".join(f"| {what} | {version} |\n" for what, version in rows)
    return f"## Made with\n\n| what | version |\n|---|---|\n{lines}"


def network_hash(name: str) -> str:
    """The SHA-256 of a network's file, built in or under $MODELS."""
    builtin = name.startswith(BUILTIN)
    path = find_builtin(name.removeprefix(BUILTIN)).path if builtin else PLACES["$MODELS"] / f"{name}.onnx"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def images_hash(data: str) -> str:
    """The fingerprint of a dataset."""
    return read_dataset(filled(data)).fingerprint


def _networks(records: Sequence[RunRecord]) -> list[str]:
    found = {}
    for record in records:
        spec = record.model.spec
        name = spec if spec.startswith(BUILTIN) else Path(spec.partition(":")[2].partition(",")[0]).stem
        found[name] = record.model.sha256
        if record.model.sha256 not in (None, network_hash(name)):
            raise SystemExit(f"{name} is not the network that was run; remove {KEPT} and make it again.")
    return sorted(found)


def _datasets(records: Sequence[RunRecord]) -> list[str]:
    """The specs of the images; without depth, which is computed from them."""
    specs = (_emptied(record.dataset.spec) for record in records)
    return sorted({",".join(p for p in spec.split(",") if not p.startswith("depth=")) for spec in specs})


# Findings of the papers


@dataclass(frozen=True)
class Finding:
    """A paper's finding, with our numbers, and whether they agree with it."""

    text: str
    holds: bool


def as_lists(findings: Iterable[Finding]) -> str:
    """Findings by whether our numbers agree with them."""
    held = list(findings)
    text = ""
    for title, holds in (("Agrees on these images", True), ("Does not agree", False)):
        lines = [f"- {finding.text}\n" for finding in held if finding.holds == holds]
        text += f"## {title}\n\n{''.join(lines)}\n" if lines else ""
    return text
