"""Every place where something can be added to Stormproof, with its contract.

An installed package adds to a point with an entry point of its `group`. What the entry point must refer to is
the `contract`, whose names `stormproof.extend` exports; `page` is the page of docs/adding/ that adds one,
step by step. Our own leaves (`style`, `depth`, `world`, `integrations`) plug in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExtensionPoint:
    """A kind of thing that can be added. `kind` and `plural` are what messages call it."""

    group: str
    kind: str
    plural: str
    contract: str
    page: str


CORRUPTIONS = ExtensionPoint(
    "stormproof.corruptions", "corruption", "corruptions",
    "a module whose recipes are declared with @corruption", "corruption.md",
)  # fmt: skip
DATASETS = ExtensionPoint(
    "stormproof.datasets", "kind of dataset", "kinds of datasets",
    "a function of a spec's main part, with options as keyword-only parameters, that returns a Dataset",
    "dataset.md",
)  # fmt: skip
WRITERS = ExtensionPoint(
    "stormproof.writers", "format", "formats", "a Writer: how samples become files of a format", "dataset.md",
)  # fmt: skip
MODELS = ExtensionPoint(
    "stormproof.models", "kind of model", "kinds of models",
    "a function of a spec's main part, with options as keyword-only parameters, that returns a Model",
    "adapter.md",
)  # fmt: skip
DECODERS = ExtensionPoint(
    "stormproof.decoders", "decoder", "decoders",
    "an OutputDecoder: how the outputs of a family of networks become predictions",
    "adapter.md",
)  # fmt: skip
ENHANCEMENTS = ExtensionPoint(
    "stormproof.enhancements", "enhancement", "enhancements",
    "a function from an image to an image of the same size; attribute `fingerprint` identifies its weights",
    "plugin.md",
)  # fmt: skip
METRICS = ExtensionPoint(
    "stormproof.metrics", "metric", "metrics",
    "a module whose metrics are declared with @metric", "metric.md",
)  # fmt: skip
TASKS = ExtensionPoint(
    "stormproof.tasks", "task", "tasks",
    "a module that declares forms with form(…) and tasks with task(…)", "task.md",
)  # fmt: skip
AGGREGATES = ExtensionPoint(
    "stormproof.aggregates", "aggregate", "aggregates",
    "a module whose aggregates are declared with @aggregate", "aggregate.md",
)  # fmt: skip
ENGINES = ExtensionPoint(
    "stormproof.engines", "engine", "engines",
    "a function of a RunConfig and the number of chunks, with options as keyword-only parameters, that "
    "returns an Executor",
    "plugin.md",
)  # fmt: skip
TRACKERS = ExtensionPoint(
    "stormproof.trackers", "tracker", "trackers", "a function without parameters that returns a Service",
    "plugin.md",
)  # fmt: skip
VERSIONS = ExtensionPoint(
    "stormproof.versions", "kind of version", "kinds of versions",
    "a subclass of Version: how `stormproof corrupt` copies images under the corruption of that name",
    "plugin.md",
)  # fmt: skip
COMMANDS = ExtensionPoint(
    "stormproof.commands", "command", "commands",
    "a module that adds verbs with @app.command() when it is imported", "plugin.md",
)  # fmt: skip

SECTIONS = ExtensionPoint(
    "stormproof.sections", "section of the report", "sections of the report",
    "a module whose sections are declared with @section", "section.md",
)  # fmt: skip

POINTS = (
    CORRUPTIONS, DATASETS, WRITERS, MODELS, DECODERS, ENHANCEMENTS, METRICS, TASKS, AGGREGATES, ENGINES,
    TRACKERS, VERSIONS, COMMANDS, SECTIONS,
)  # fmt: skip
