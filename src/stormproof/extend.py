"""What a plugin may import, in one place: `from stormproof.extend import Measure, Scored, metric`.

These names and those of `stormproof` itself are public; every other path is free to change. All but `imaging`
are loaded on first use.
"""

from importlib import import_module
from typing import Any

from stormproof import imaging as imaging

_HOMES = {
    name: home
    for home, names in {
        "cli": ("app",),
        "core.condition": ("CLEAN", "Condition"),
        "core.errors": ("DatasetError", "InvalidOption", "ModelError", "StormproofError", "UnknownName"),
        "core.files": ("locate", "read_lines"),
        "core.forms": (
            "Array", "CocoFields", "Column", "Comparison", "Form", "Motion", "YoloLines", "form",
        ),
        "core.loading": ("framework",),
        "core.randomness": ("Draw",),
        "core.sample": (
            "RLE", "Bools", "Floats", "Image", "Instances", "Ints", "Prediction", "Sample", "SemanticMap",
            "Truth",
        ),
        "core.table": ("Table",),
        "corruptions.corruption": ("constant", "corruption", "free", "ladder"),
        "datasets.annotations": ("map_dataset",),
        "datasets.dataset": ("READERS", "Dataset", "FileDataset", "SampleDataset", "Source"),
        "datasets.writing": ("WRITERS", "Writer"),
        "engine.chunk": ("do_chunk_safely",),
        "engine.config": ("RunConfig",),
        "engine.executors": ("Executor",),
        "engine.trackers": ("Service",),
        "engine.work": ("Attempt", "ChunkResult"),
        "metrics.aggregate": ("aggregate",),
        "metrics.coco": ("coco_scored",),
        "metrics.cocomatching": ("mask_overlaps", "match_groups"),
        "metrics.grid": ("Grid",),
        "metrics.inputs": ("OBJECTS", "Maps", "MetricInput", "Objects", "RunReader", "Segments"),
        "metrics.matching": ("FALSE", "TRUE", "by_class_and_image", "judge_voc"),
        "metrics.metric": (
            "Measure", "Scored", "Weights", "detail", "metric", "ratio", "weighted_ratios", "weighted_sums",
        ),
        "metrics.performance": ("mpc_by_corruption",),
        "metrics.records": ("DetectionTruth", "Detections"),
        "metrics.task": ("Task", "task"),
        "models.decoders": ("DECODERS", "OutputDecoder"),
        "models.model": ("ADAPTERS", "Model", "PerImage"),
        "report.elements": ("Axis", "Figure", "Kind", "Section"),
        "report.sections": ("Scope", "all_levels", "group_by_severity", "per_cent", "section", "unit"),
        "tools.derived": ("Version",),
    }.items()
    for name in names
}  # fmt: skip

__all__ = sorted([*_HOMES, "imaging"])


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'stormproof.extend' has no attribute {name!r}")
    return getattr(import_module(f"stormproof.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
