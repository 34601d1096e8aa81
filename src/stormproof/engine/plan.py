"""The plan of a run: what it is, what is done already, what is left."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.processes import one_thread
from stormproof.core.provenance import provenance
from stormproof.corruptions import find
from stormproof.corruptions.on_device import check_device, check_on_device
from stormproof.corruptions.plugins import declaration, is_plugin, load_plugins
from stormproof.datasets.image_files import check_copies
from stormproof.engine.chunk import missing_cells
from stormproof.engine.conditions import conditions_for
from stormproof.engine.config import Engine, RunConfig
from stormproof.engine.pair import Pair, forget_pair, open_pair
from stormproof.engine.quota import Quota
from stormproof.engine.rehearsal import first_look, rehearse, require_truth
from stormproof.engine.work import Work
from stormproof.metrics.metric import measures
from stormproof.models.classes import is_background, match_classes
from stormproof.models.fingerprint import fingerprint
from stormproof.models.model import Precomputed
from stormproof.models.sanity_checks import describe_model
from stormproof.results.store.parts import held_cells, part_path
from stormproof.results.store.record import RECORD, DatasetRecord, ModelRecord, RunRecord, read_record

_CELLS = 512  # cells per part that are worth a file and two fsyncs
_MOST = 64  # images per chunk, however few the conditions: a kill loses no more
_FEWEST = 16  # chunks per run, so that a small set still keeps several workers busy


@dataclass(frozen=True, slots=True)
class Plan:
    """A run as asked for: its record, the workers' orders, and this shard's chunks."""

    config: RunConfig
    record: RunRecord
    work: Work
    chunks: range
    taken_for: str = ""  # what the model was taken for, in one line
    remarks: tuple[str, ...] = ()  # what looks wrong in its first answers


@dataclass(frozen=True, slots=True)
class Survey:
    """Where a run stands: chunks left, and cells left and in all by condition."""

    chunks: tuple[int, ...]
    left: Mapping[str, int]
    total: Mapping[str, int]
    images_left: int

    @property
    def cells_left(self) -> int:
        return sum(self.left.values())

    @property
    def cells(self) -> int:
        return sum(self.total.values())


def make_plan(config: RunConfig, *, quota: int | None = None, keep_dataset: bool = False) -> Plan:
    """Open model and dataset, and lay out the run; nothing is written.

    `quota` is for a run that estimates: how many images each corrupted condition gets. `keep_dataset`: the
    one that is open will do, where many models are planned one after the other.
    """
    one_thread()
    load_plugins(config.plugin)
    if config.device is not None and config.engine in (Engine.local, Engine.pool):
        check_device(config.device)
    forget_pair(dataset=not keep_dataset)
    spec = config.data_spec()
    pair = open_pair(config.model, config.enhance, spec)
    _require_common_classes(pair)
    conditions = conditions_for(config, pair.model)
    images = min(len(pair.dataset), config.limit or len(pair.dataset))
    if not images:
        raise InvalidOption(f"{spec} holds no images.")
    if not isinstance(pair.model, Precomputed):
        for condition in conditions if config.device is not None else ():
            check_on_device(condition)
        if config.copies is not None:
            check_copies(config.copies, conditions)
        else:
            rehearse(pair.dataset, conditions, images=images, seed=config.seed)
    if (measure := headline(config)) is not None:
        require_truth(pair.dataset, measure, images=images)
    out = Path(config.out).absolute()
    # A batch on a device is of one condition, so a part holds enough images for one.
    fewest = config.batch if config.device is not None else 1
    chunk = config.chunk or _chunk(out, images, len(conditions), fewest)
    record = _record(config, pair, spec, conditions, images, chunk)
    part = None
    if quota is not None and quota < images:
        part = Quota.of(quota, images, conditions, config.seed)
        record = record.model_copy(update={"quota": quota})
    work = Work(
        model=config.model, enhance=config.enhance, data=spec,
        conditions=tuple(sorted(conditions, key=str)), recipes=record.recipes, seed=config.seed,
        batch=config.batch, timeout=config.timeout, chunk=chunk, images=images,
        out=out, key=record.key,
        fingerprints=(record.model.fingerprint, record.dataset.fingerprint),
        folder=str(Path.cwd()), modules=tuple(place for place in sys.path if place), quota=part,
        plugins=tuple(str(Path(file).expanduser().resolve()) for file in config.plugin), copies=record.copies,
        device=config.device,
    )  # fmt: skip
    turn, turns = config.share
    config = config.model_copy(update={"chunk": chunk})
    chunks = range(turn - 1, -(-images // chunk), turns)
    described = describe_model(pair.model)
    return Plan(config, record, work, chunks, described, first_look(pair.model, pair.dataset))


def headline(config: RunConfig) -> str | None:
    """The measure that a run is about: the one asked for, or the benchmark's."""
    if config.measure is None:
        return config.preset.metric if config.preset is not None else None
    if config.measure not in measures():
        raise UnknownName("measure", config.measure, measures(), f"There are {', '.join(measures())}.")
    return config.measure


def survey(plan: Plan) -> Survey:
    """What the parts on disk leave to do of this shard."""
    work, left, total = plan.work, Counter[str](), Counter[str]()
    chunks, images, names = [], 0, [str(condition) for condition in work.conditions]
    for chunk in plan.chunks:
        path = part_path(work.out, chunk)
        if not path.exists() and work.quota is None:
            count = len(work.indices(chunk))
            total.update(dict.fromkeys(names, count))
            left.update(dict.fromkeys(names, count))
            images += count
            chunks.append(chunk)
            continue
        total.update(text for named in work.cells(chunk).values() for _, text in named)
        missing = missing_cells(work, chunk, held_cells(path, work.key))
        left.update(str(condition) for conditions in missing.values() for condition in conditions)
        images += len(missing)
        if missing:
            chunks.append(chunk)
    return Survey(tuple(chunks), dict(left), dict(total), images)


def _require_common_classes(pair: Pair) -> None:
    """Refuse a model that cannot be right about anything in the dataset; background alone is not anything."""
    model, dataset = pair.model, pair.dataset
    sides = (
        (model.classes, dataset.classes),
        (model.semantic_classes, dataset.semantic_classes),
    )
    both = [(theirs, ours) for theirs, ours in sides if theirs and ours]
    if not both and all(any(names) for names in zip(*sides, strict=True)):
        kind = "objects" if model.classes else "label maps"
        raise InvalidOption(
            f"{model.name} predicts {kind}, of which {dataset.name} has no truth: nothing could be scored; "
            "open its other truth (voc-seg: for voc:, panoptic: for coco:) or another dataset."
        )
    for theirs, ours in both:
        if all(is_background(name) for name, label in match_classes(theirs, ours).pairs if label >= 0):
            raise InvalidOption(
                f"No class of {model.name} ({', '.join(theirs[:5])} …) is a class of {dataset.name} "
                f"({', '.join(ours[:5])} …); rename the model's classes to the dataset's, in a card "
                f"with rename: {{{theirs[-1]}: …}}."
            )


def _chunk(out: Path, images: int, conditions: int, fewest: int) -> int:
    """Images per chunk: as the run folder has it, else enough cells to make writing cheap.

    It follows from the plan alone, never from the machine, so that shards and repeated commands agree.
    """
    if (out / RECORD).exists():
        return read_record(out).chunk
    return max(fewest, min(-(-_CELLS // conditions), _MOST, -(-images // _FEWEST)))


def _files(conditions: tuple[Condition, ...]) -> list[Path]:
    named = [path for c in conditions if c.corruption for path in find(c.corruption).files(c)]
    return list(dict.fromkeys(named))


def _record(
    config: RunConfig,
    pair: Pair,
    spec: str,
    conditions: tuple[Condition, ...],
    images: int,
    chunk: int,
) -> RunRecord:
    model, dataset = pair.model, pair.dataset
    names = dict.fromkeys(c.corruption for c in conditions if c.corruption)
    plugins = [Path(file).expanduser() for file in config.plugin]
    return RunRecord(
        model=ModelRecord(
            spec=config.model, enhance=config.enhance, name=model.name, fingerprint=model.fingerprint,
            classes=model.classes, semantic_classes=model.semantic_classes,
        ),
        dataset=DatasetRecord(
            spec=spec, name=dataset.name, fingerprint=dataset.fingerprint, images=len(dataset),
            classes=dataset.classes, semantic_classes=dataset.semantic_classes,
        ),
        seed=config.seed, chunk=chunk, images=images,
        conditions=tuple(map(str, conditions)),
        recipes={name: find(name).version for name in names},
        files={str(path): fingerprint([path], {}) for path in (*_files(conditions), *plugins)},
        copies=None if config.copies is None else str(Path(config.copies).expanduser().absolute()),
        declared={name: declaration(find(name)) for name in names if is_plugin(find(name))},
        expect=config.expect,
        benchmark=config.benchmark, metric=headline(config),
        tags=config.tags, provenance=provenance(config.device),
    )  # fmt: skip
