"""The plan of a run: what it is, what is done already, what is left."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stormproof.core.condition import CLEAN, Condition
from stormproof.core.errors import InvalidOption, ModelError, StormproofError, UnknownName
from stormproof.core.files import sha256
from stormproof.core.private import without_secrets
from stormproof.core.processes import one_thread
from stormproof.core.provenance import provenance
from stormproof.core.spec import spec_file
from stormproof.corruptions.chain import order_doubts, steps
from stormproof.corruptions.grammar import read_conditions
from stormproof.corruptions.on_device import check_device, check_on_device
from stormproof.corruptions.plugins import Declaration, is_plugin, load_plugins
from stormproof.datasets.copies import check_copies
from stormproof.datasets.survey import first_findings
from stormproof.engine import checks
from stormproof.engine.chunk import missing_cells
from stormproof.engine.config import RunConfig
from stormproof.engine.executors import executor_for
from stormproof.engine.pair import Pair, forget_pair, open_dataset_once, open_pair
from stormproof.engine.work import Quota, Work
from stormproof.metrics.metric import measures
from stormproof.models.enhance import read_enhancement
from stormproof.models.model import Model, Precomputed, fingerprint
from stormproof.models.sanity_checks import describe_model
from stormproof.results.run import Run
from stormproof.results.store.parts import held_cells, part_path
from stormproof.results.store.record import RECORD, DatasetRecord, ModelRecord, RunRecord, read_record

_CELLS = 512  # cells per part that are worth a file and two fsyncs
_MOST = 64  # images per chunk, however few the conditions, which limits what a kill can lose
_BATCHES = 8  # of images per chunk on a device
_FEWEST = 16  # chunks per run, so that a small dataset still keeps several workers busy


@dataclass(frozen=True, slots=True)
class Plan:
    """A run as requested: its record, the workers' orders, and the chunks of this shard."""

    config: RunConfig
    record: RunRecord
    work: Work
    chunks: range
    model_description: str = ""  # how the model is run, in one line
    remarks: tuple[str, ...] = ()  # what looks wrong in its first predictions
    doubts: tuple[str, ...] = ()  # about depth, the order of parts, copies that nothing vouches for, times


@dataclass(frozen=True, slots=True)
class Survey:
    """The state of a run: chunks left, and cells left and in total by condition."""

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


@dataclass(frozen=True, slots=True)
class RunSize:
    """How large a run will be. Conditions of precomputed predictions count only if they are named."""

    dataset: str
    images: int
    conditions: int
    cells: int
    left: int  # cells that the run folder does not have


def requested_conditions(config: RunConfig) -> tuple[Condition, ...]:
    """The conditions that the settings name, clean first; none if they name nothing."""
    named = read_conditions(config.conditions)
    if config.preset is None:
        return tuple(dict.fromkeys((CLEAN, *named))) if named else ()
    own = config.preset.conditions()
    for condition in named:
        if condition not in own:
            fix = "leave it out, or run it on its own with --data"
            raise InvalidOption(f"{condition} is not part of {config.benchmark}; {fix}.")
    return tuple(c for c in own if not named or c in named or c == CLEAN)


def conditions_for(config: RunConfig, model: Model | Precomputed) -> tuple[Condition, ...]:
    """The conditions of a run. Precomputed predictions default to every condition they cover."""
    wanted = requested_conditions(config)
    if not isinstance(model, Precomputed):
        if not wanted:
            raise InvalidOption(
                "No conditions given: add --conditions imagenet-c, --conditions fog@3 or --benchmark coco-c "
                "(--conditions clean for the clean images alone)."
            )
        return wanted
    offered = model.conditions
    missing = [str(condition) for condition in wanted if condition not in offered]
    if missing:
        raise InvalidOption(
            f"{config.model} has no predictions for {', '.join(missing)} "
            f"(found: {', '.join(map(str, offered))}); predict the corrupted images too ('stormproof "
            "corrupt' writes them) and save a file for each condition: docs/models.md."
        )
    # Clean predictions come first if there are any: every relative score needs them.
    return wanted or tuple(dict.fromkeys((*(c for c in offered if c == CLEAN), *offered)))


def make_plan(config: RunConfig, *, quota: int | None = None, keep_dataset: bool = False) -> Plan:
    """Open the model and the dataset, and lay out the run; nothing is written.

    `quota` is the number of images per corrupted condition, for a run that estimates. `keep_dataset` reuses
    the open dataset, for many models planned one after the other.
    """
    one_thread()
    load_plugins(config.plugin)
    executor = executor_for(config, 1)  # refuses a wrong engine before anything is opened
    if config.device is not None and executor.on_this_machine:
        check_device(config.device)
    if config.profile is not None:
        checks.require_place(config.profile)
    forget_pair(dataset=not keep_dataset)
    spec = config.data_spec()
    try:
        pair = open_pair(config.model, config.enhance, spec)
    except StormproofError:
        checks.refuse_swapped(config.model, spec)  # the likelier reason
        raise
    checks.require_common_classes(pair)
    conditions = conditions_for(config, pair.model)
    images = min(len(pair.dataset), config.limit or len(pair.dataset))
    if not images:
        raise InvalidOption(f"{spec} has no images.")
    doubts = [checks.depth_doubts(pair.dataset, conditions), order_doubts(conditions)]
    if isinstance(pair.model, Model):
        checks.require_images(pair.dataset, images, allow_missing=config.allow_missing)
        for condition in conditions if config.device is not None else ():
            check_on_device(condition)
        if config.copies is not None:
            doubts.append(check_copies(config.copies, conditions, seed=config.seed))
        else:
            checks.require_possible(pair.dataset, conditions, images=images, seed=config.seed)
    elif config.timed:
        doubts.append(f"{pair.model.name} holds precomputed predictions: --timed has no call to time.")
    if (measure := headline(config)) is not None:
        checks.require_truth(pair.dataset, measure, images=images)
    out = Path(config.out).absolute()
    chunk = config.chunk or _chunk(config, out, images, len(conditions))
    record = _record(config, pair, spec, conditions, images, chunk)
    part = None
    if quota is not None and quota < images:
        part = Quota.of(quota, images, conditions, config.seed)
        record = record.model_copy(update={"quota": quota})
    plugins = tuple(str(Path(file).expanduser().resolve()) for file in config.plugin)
    work = Work(
        config=config.model_copy(update={"plugin": plugins, "copies": record.copies}),
        record=record,
        conditions=tuple(sorted(conditions, key=str)),
        out=out,
        folder=str(Path.cwd()),
        modules=tuple(place for place in sys.path if place),
        quota=part,
    )
    turn, turns = config.share
    chunks = range(turn - 1, -(-images // chunk), turns)
    config, described = config.model_copy(update={"chunk": chunk}), describe_model(pair.model)
    remarks = checks.first_look(pair.model, pair.dataset)
    return Plan(config, record, work, chunks, described, remarks, tuple(filter(None, doubts)))


def label_findings(data: str, images: int) -> list[str]:
    """What looks wrong in the annotations of a dataset's first images; see `annotation_checks`."""
    return [one.what for one in first_findings(open_dataset_once(data), images)]


def headline(config: RunConfig) -> str | None:
    """The headline measure of a run: the one given, or the benchmark's."""
    if config.measure is None:
        return config.preset.metric if config.preset is not None else None
    if config.measure not in measures():
        raise UnknownName("measure", config.measure, measures(), f"There are {', '.join(measures())}.")
    return config.measure


def survey(plan: Plan) -> Survey:
    """The chunks and cells of this shard that the parts on disk lack."""
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
        missing = missing_cells(work, chunk, held_cells(path, work.record.key))
        left.update(str(condition) for conditions in missing.values() for condition in conditions)
        images += len(missing)
        if missing:
            chunks.append(chunk)
    return Survey(tuple(chunks), dict(left), dict(total), images)


def size_of(config: RunConfig) -> RunSize:
    """The size of a run, found without opening its model."""
    dataset, wanted = open_dataset_once(config.data_spec()), requested_conditions(config)
    images, run = min(len(dataset), config.limit or len(dataset)), Path(config.out)
    cells, held = images * len(wanted), 0
    if (run / RECORD).exists():
        names = {str(condition) for condition in wanted}
        held = sum(len(indices) for text, indices in Run(run).held.items() if text in names)
    return RunSize(dataset.name, images, len(wanted), cells, max(0, cells - held))


def copies_doubt(config: RunConfig) -> str:
    """The warning about the copies that a run will read, if any; errors are left to the run."""
    if config.copies is None:
        return ""
    try:
        return check_copies(config.copies, requested_conditions(config), seed=config.seed)
    except StormproofError:
        return ""


def _chunk(config: RunConfig, out: Path, images: int, conditions: int) -> int:
    """Images per chunk: as the run folder has it, else enough cells to make writing cheap.

    It follows from the plan alone, never from the machine, so that shards and repeated commands agree. On a
    device, a part holds enough images for several batches, each of one condition: between parts it waits.
    """
    if (out / RECORD).exists():
        return read_record(out).chunk
    fewest = _BATCHES * config.batch if config.device is not None else 1
    return max(fewest, min(-(-_CELLS // conditions), _MOST, -(-images // _FEWEST)))


def _record(
    config: RunConfig,
    pair: Pair,
    spec: str,
    conditions: tuple[Condition, ...],
    images: int,
    chunk: int,
) -> RunRecord:
    model, dataset = pair.model, pair.dataset
    every = [step for condition in conditions for step in steps(condition)]
    corruptions = {step.corruption.name: step.corruption for step in every}
    named = [path for step in every for path in step.corruption.files(step.condition)]
    files = dict.fromkeys((*named, *(Path(file).expanduser() for file in config.plugin)))
    return RunRecord(
        name=config.name,
        model=ModelRecord(
            spec=without_secrets(config.model),
            enhance=tuple(read_enhancement(text)[0] for text in config.enhance),
            name=model.name, fingerprint=model.fingerprint,
            sha256=None if (file := spec_file(config.model)) is None else sha256(file, error=ModelError),
            classes=model.classes, semantic_classes=model.semantic_classes,
        ),
        dataset=DatasetRecord(
            spec=spec, name=dataset.name, fingerprint=dataset.fingerprint, images=len(dataset),
            classes=dataset.classes, semantic_classes=dataset.semantic_classes,
        ),
        seed=config.seed, chunk=chunk, images=images,
        conditions=tuple(map(str, conditions)),
        recipes={name: corruption.version for name, corruption in corruptions.items()},
        files={str(path): fingerprint([path], {}) for path in files},
        copies=None if config.copies is None else str(Path(config.copies).expanduser().absolute()),
        declared={name: Declaration.of(one) for name, one in corruptions.items() if is_plugin(one)},
        expect=config.expect,
        benchmark=config.benchmark, metric=headline(config),
        tags=config.tags, provenance=provenance(config.device) | {"batch": config.batch},
    )  # fmt: skip
