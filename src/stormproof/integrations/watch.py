"""`stormproof.watch`: P and mPC of a network while it is being trained.

    watch = stormproof.watch("coco:val.json,images=val", every=5, precision=1.0)

    for epoch in range(100):
        train(network)
        watch(epoch, lambda images: predict(network, images))           # any loop
    model.add_callback("on_model_save", watch.ultralytics)               # Ultralytics
    Trainer(callbacks=[watch.lightning(predict)])                        # Lightning; predict(module, images)
    runner.register_hook(watch.mmengine(predict))                        # mmengine; predict(model, images)

Every reading is a separate run, only as large as the precision requires: mPC to ± 1 point usually takes a few
per cent of the grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption
from stormproof.core.loading import framework
from stormproof.core.progress import duration_text
from stormproof.core.sample import Image
from stormproof.core.spec import Spec
from stormproof.core.table import Table, cell_text
from stormproof.corruptions.grammar import read_conditions
from stormproof.datasets.opened import open_dataset
from stormproof.engine.api import AnyDataset, AnyModel, run
from stormproof.metrics.metric import measures
from stormproof.results.estimate import read_estimate
from stormproof.results.run import Run

Predict = Callable[[Any, Sequence[Image]], Any]  # takes a network and images
Log = Callable[[Mapping[str, float], int], None]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a network scored at one step, as fractions.

    `mpc` is the mean over the conditions; `mean` is what it is called, mPC if they are a whole suite.
    `margin` is half the width of the 95 % interval of what the whole grid would give; 0 if all of it was run.
    """

    step: int
    measure: str
    mean: str
    clean: float
    mpc: float
    margin: float
    worst: str  # the corruption with the lowest mean, or the highest if the measure is an error
    worst_score: float
    seconds: float

    @property
    def numbers(self) -> dict[str, float]:
        """For a tracker, in percent."""
        mean = self.mean.partition(" ")[0]
        return {
            f"stormproof/P {self.measure}": 100 * self.clean,
            f"stormproof/{mean} {self.measure}": 100 * self.mpc,
            f"stormproof/{mean} ±": 100 * self.margin,
            "stormproof/worst": 100 * self.worst_score,
        }

    def __str__(self) -> str:
        margin = f" ± {cell_text(100 * self.margin)}" if self.margin else ""
        return (
            f"step {self.step}: {self.measure} {100 * self.clean:.1f} clean, "
            f"{self.mean} {100 * self.mpc:.1f}{margin}, "
            f"worst {self.worst} {100 * self.worst_score:.1f} ({duration_text(self.seconds)})"
        )


class Watch:
    """Scores a network clean and corrupted at every `every`-th step; see the module for the loops it fits.

    `precision` is in percentage points of mPC; 0 runs the whole grid. `limit` keeps the first images of the
    dataset. Runs are kept in `out`, if given. `log` takes the numbers of a reading and its step; without one,
    a line is printed.
    """

    def __init__(
        self,
        data: AnyDataset,
        conditions: str | Condition | Iterable[str | Condition] = "imagenet-c",
        *,
        every: int = 1,
        precision: float = 1.0,
        limit: int | None = None,
        batch: int = 8,
        device: str | None = None,
        out: str | PathLike[str] | None = None,
        log: Log | None = None,
    ) -> None:
        if every < 1:
            raise InvalidOption(f"every={every}: it must be at least 1.")
        if not precision >= 0:  # this and a typo fail now, not after the first epoch
            raise InvalidOption(f"precision={precision}: give percentage points, or 0 for the whole grid.")
        read_conditions(conditions)
        self._data = open_dataset(data, limit=limit)
        self._settings = {
            "conditions": conditions, "precision": precision, "batch": batch, "device": device,
            "engine": "local",  # the network exists in this process only
        }  # fmt: skip
        self._every, self._out, self._log = every, out, log
        self._began = monotonic()
        self.readings: list[Reading] = []

    def __call__(self, step: int, model: AnyModel) -> Reading | None:
        """Score the model if this is an `every`-th step; the reading, or None."""
        if step % self._every:
            return None
        begun = monotonic()
        with self._folder(step) as folder:
            done = run(model, self._data, out=folder, progress=False, **self._settings)
            reading = _reading(done, step, begun)
        self.readings.append(reading)
        if self._log is None:
            print(reading)
        else:
            self._log(reading.numbers, step)
        return reading

    @property
    def share(self) -> float:
        """The share of the time since the watch was made that its readings took."""
        return sum(reading.seconds for reading in self.readings) / max(monotonic() - self._began, 1e-9)

    def table(self) -> Table:
        """All readings, in percent."""
        mean = self.readings[-1].mean if self.readings else "mPC"
        return Table(
            "watch", "The network while it was trained", ("step", "P", mean, "±", "worst", "its score"),
            [
                (r.step, 100 * r.clean, 100 * r.mpc, 100 * r.margin, r.worst, 100 * r.worst_score)
                for r in self.readings
            ],
        )  # fmt: skip

    def ultralytics(self, trainer: Any) -> None:
        """A callback for Ultralytics' event `on_model_save`: the weights just saved are scored.

        They are the trainer's own file, so they are trusted.
        """
        if (step := trainer.epoch + 1) % self._every == 0:
            options = {"trust": "true", "device": str(getattr(trainer, "device", "cpu"))}
            self(step, str(Spec("ultralytics", str(trainer.last), options)))

    def lightning(self, predict: Predict) -> Any:
        """A Lightning callback; `predict(module, images)` returns predictions in any form a model may."""
        watch, base = self, framework("lightning.pytorch", install="pip install lightning").Callback

        class WatchCallback(base):  # type: ignore[misc, valid-type]
            def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
                reading = watch._watched(trainer.current_epoch + 1, module, predict)
                for logger in trainer.loggers:
                    if reading:
                        logger.log_metrics(reading.numbers, step=trainer.global_step)

        return WatchCallback()

    def mmengine(self, predict: Predict) -> Any:
        """An mmengine hook; `predict(model, images)` returns predictions in any form a model may."""
        watch, base = self, framework("mmengine.hooks", install="pip install mmengine").Hook

        class WatchHook(base):  # type: ignore[misc, valid-type]
            def after_train_epoch(self, runner: Any) -> None:
                reading = watch._watched(runner.epoch + 1, runner.model, predict)
                if reading:
                    runner.visualizer.add_scalars(reading.numbers, step=runner.epoch + 1)

        return WatchHook()

    def _watched(self, step: int, module: Any, predict: Predict) -> Reading | None:
        """Score a torch module between two epochs, then restore its training mode."""
        if step % self._every:
            return None
        torch, training = framework("torch", extra="torch"), module.training
        module.eval()
        try:
            with torch.no_grad():
                return self(step, lambda images: predict(module, images))
        finally:
            module.train(training)

    @contextmanager
    def _folder(self, step: int) -> Iterator[Path]:
        if self._out is not None:
            yield Path(self._out) / f"step-{step:06d}"
            return
        with TemporaryDirectory(prefix="stormproof-watch-") as folder:
            yield Path(folder) / "run"


watch = Watch  # public as stormproof.watch(data)


def _reading(run: Run, step: int, begun: float) -> Reading:
    """From the estimate that a run kept, or from its scores if the whole grid was run."""
    kept = read_estimate(run)
    if kept is not None:
        measure, name = kept["measure"], kept["mean"]
        means = {each: _nan_if_none(scored["estimate"]) for each, scored in kept["by_corruption"].items()}
        low, middle, high = (_nan_if_none(kept["mpc"][end]) for end in ("low", "estimate", "high"))
        numbers = _nan_if_none(kept["clean"]), middle, (high - low) / 2
    else:
        scores = run.score()
        measure, name = scores.headline, scores.over.mean_name
        means, mean = scores.by_corruption(measure), scores.mean(measure)
        numbers = scores.score(measure), math.nan if mean is None else mean, 0.0
    return Reading(step, measure, name, *numbers, *worst_of(means, measure), monotonic() - begun)


def worst_of(means: Mapping[str, float], measure: str) -> tuple[str, float]:
    """The corruption with the lowest mean, or the highest of errors, and that mean; NaN where none is known.

    >>> worst_of({"fog": 0.3, "snow": 0.2}, "AP"), worst_of({"fog": 0.3, "snow": 0.2}, "E")
    (('snow', 0.2), ('fog', 0.3))
    """
    known = {name: value for name, value in means.items() if not math.isnan(value)}
    if not known:
        return "", math.nan
    name = (min if measures()[measure].higher else max)(known, key=lambda each: known[each])
    return name, known[name]


def _nan_if_none(number: float | None) -> float:
    """A number of a kept file, where null means that there is none."""
    return math.nan if number is None else number
