"""The card of a network file: what its graph shows, what its outputs on a few images show, and what labelled
images show, if there are any. The card then needs no further hint to run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, cast

import yaml

from stormproof.core.errors import CardChange, InvalidOption, ModelError, StormproofError
from stormproof.core.sample import Image
from stormproof.core.spec import Spec, keyword_options
from stormproof.datasets.opened import OpenedDataset
from stormproof.models import load_model
from stormproof.models.card import COCO_NUMBERS, Card, check_card, read_card
from stormproof.models.classes import (
    COCO,
    NO_CLASS,
    VOCABULARIES,
    is_background,
    match_classes,
    resolve_classes,
)
from stormproof.models.decoders import DECODERS
from stormproof.models.guess import guess_input
from stormproof.models.network import Network
from stormproof.models.sanity_checks import USUAL_SIDE, Probe, find_faults
from stormproof.tools.tune import IMAGES, Tuning, input_candidates, score_clean, tune_input

_GLANCE = 8  # images that show which labels are predicted
_ROUNDS = 5  # changes, one after the other: each may reveal the next
FOREGROUND = ["background", "foreground"]


class ShowsProgress(Protocol):
    def advance(self) -> object: ...


class _Unseen(ShowsProgress):
    def advance(self) -> None: ...


# Shows the progress of some trials: a title, how many there are, and what they are called.
Watch = Callable[[str, int, str], AbstractContextManager[ShowsProgress]]


def show_nothing(title: str, total: int, unit: str) -> AbstractContextManager[ShowsProgress]:
    return nullcontext(_Unseen())


@dataclass(frozen=True, eq=False)
class Fixed:
    """A network as its new card makes it: what was changed, with the reason, and what nothing shows."""

    network: Network
    changes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    tuning: Tuning | None = None
    stated: frozenset[str] = field(default_factory=frozenset)  # keys of the card that the graph shows

    def card(self) -> dict[str, Any]:
        """The card as plain data, with every setting that the network was run with."""
        values = self.network.card.model_dump(mode="json")
        usual = {"rename": {}, "options": {}, "label_offset": 0}
        kept = {
            key: value
            for key, value in values.items()
            if value is not None and (key in self.stated or value != usual.get(key, ...))
        }
        classes = self.network.card.classes
        if isinstance(classes, str) and classes not in VOCABULARIES:  # a file that lies elsewhere
            kept["classes"] = [*self.network.names]
            kept.pop("rename", None)
        return kept


def draft_values(spec: Spec, probe: Probe) -> dict[str, Any]:
    """What the graph, the card and the spec say together; labels are the dataset's if none names classes."""
    given, place = read_card(Path(spec.main), spec.options.get("card"))
    decoder = spec.options.get("decoder") or given.get("decoder")
    if decoder in (None, probe.card.get("decoder")):
        shown = probe.card
    else:  # what is usual for the family that was recognised does not apply
        shown = {"input": {"size": (USUAL_SIDE, USUAL_SIDE), **guess_input(probe.graph)}, "decoder": decoder}
    classes = given.get("classes")
    if isinstance(classes, str):
        names = resolve_classes(classes, place.parent if place else None)
        given["classes"] = classes if classes in VOCABULARIES else [*(names or ())]
    fed = {**shown["input"], **(given.get("input") or {})}
    if fed.get("dtype") in ("uint8", "int8"):  # such networks normalise inside
        fed = {key: value for key, value in fed.items() if key not in ("mean", "std")}
    return {"classes": "dataset", **shown, **given, "input": fed}


def fix_network(
    spec: Spec,
    probe: Probe,
    images: Sequence[Image],
    data: OpenedDataset | None,
    *,
    tune: bool,
    watch: Watch = show_nothing,
) -> Fixed:
    """Open a network file and apply every hint. `data`, if given, is labelled: it decides the classes where
    nothing names them, and the input with `tune`. `watch` shows the progress of trials."""
    given, _ = read_card(Path(spec.main), spec.options.get("card"))
    network = _open_draft(spec, draft_values(spec, probe))
    network, changes = apply_hints(network, images)
    doubts: list[str] = []
    if not any("classes" in one for one in (spec.options, given, probe.card)):
        network, said, sure = choose_classes(network, probe, images, data, watch)
        (changes if sure else doubts).append(said)
    tuning = None
    if tune and data is not None:
        try:
            with watch("trying inputs", 1 + len(input_candidates(network.card.input)), "inputs") as shown:
                tuning = tune_input(network, data, step=shown.advance)
        except InvalidOption as error:
            doubts.append(f"the input could not be tried on these images: {error}")
        else:
            network = replace(network, card=network.card.model_copy(update={"input": tuning.chosen.input}))
    elif probe.guessed and "input" not in given:
        doubts.append(
            f"input: {probe.guessed} is usual for such networks, but a guess; with labelled images, --data "
            "DATASET, the usual others are tried."
        )
    return Fixed(
        network, tuple(changes), tuple(doubts), tuning, frozenset(probe.card) & {"options", "label_offset"}
    )


def _open_draft(spec: Spec, values: Mapping[str, Any]) -> Network:
    """The network with these values as its card, under the other options of its spec."""
    with TemporaryDirectory(prefix="stormproof-card-") as folder:
        path = Path(folder) / "card.yaml"
        path.write_text(card_text(values), encoding="utf-8")
        return cast(Network, load_model(str(Spec(spec.kind, spec.main, {**spec.options, "card": str(path)}))))


def card_text(values: Mapping[str, Any]) -> str:
    """A card as YAML."""
    return str(yaml.safe_dump(_plain(values), sort_keys=False, allow_unicode=True, default_flow_style=None))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def apply_hints(network: Network, images: Sequence[Image]) -> tuple[Network, list[str]]:
    """The network after every change that its errors and its predictions for some images ask for."""
    said: list[str] = []
    for _ in range(_ROUNDS):
        hints: list[tuple[str, Mapping[str, Any]]] = []
        try:
            predictions = network(images)
            sizes = [(image.shape[0], image.shape[1]) for image in images]
            hints = [*find_faults(network, predictions, sizes)]
        except CardChange as error:
            hints = [(str(error), error.change)]
        mended = next(
            ((new, words, change) for words, change in hints if (new := _change(network, change))), None
        )
        if mended is None:
            return network, said
        network, words, change = mended
        said.append(f"{_show(change)}: {words.partition(';')[0].rstrip('.')}.")
    return network, said


def _change(network: Network, change: Mapping[str, Any]) -> Network | None:
    """The network with a changed card; None if that changes nothing, or the decoder has no such option."""
    values = {**network.card.model_dump(), **change}
    if "options" in change:
        known = keyword_options(DECODERS[network.card.decoder].function)
        values["options"] = {**network.card.options, **change["options"]}
        if not {*change["options"]} <= {*known}:
            return None
    try:
        card = check_card(Card, values, network.name)
    except ModelError:
        return None
    names = resolve_classes(change["classes"], None) or () if "classes" in change else network.names
    return None if card == network.card else replace(network, card=card, names=names)


def _show(change: Mapping[str, Any]) -> str:
    parts = {**change.get("options", {}), **{k: v for k, v in change.items() if k != "options"}}
    return ", ".join(
        f"{key}: {str(value).lower() if value is True else value}" for key, value in parts.items()
    )


def choose_classes(
    network: Network,
    probe: Probe,
    images: Sequence[Image],
    data: OpenedDataset | None,
    watch: Watch = show_nothing,
) -> tuple[Network, str, bool]:
    """The network with the classes that suit it best, in words why, and whether labels show it."""
    if _is_single_plane(network, probe):
        names = [name for name in (data.semantic_classes if data else ()) if not is_background(name)]
        classes = ["background", names[0]] if len(names) == 1 else FOREGROUND
        said = f"classes: [{', '.join(classes)}], as its output is a single plane"
        if len(names) == 1:
            return with_names(network, classes), f"{said} and {data and data.name} has one class.", True
        return (
            with_names(network, classes),
            f"{said}; write the name of what it finds instead of foreground.",
            False,
        )
    count = network.count_classes(images[0])
    if count == 1:
        return _name_only_class(network, data)
    said = "classes: dataset was written, as nothing names them: labels then index the dataset's classes"
    if data is None and network.card.decoder in COCO_NUMBERS and not network.card.label_offset:
        why = "such networks, trained on COCO, use COCO's own numbers; name others with classes="
        return with_names(network, "coco91"), f"classes: coco91 is a guess: {why}.", False
    if data is None and len(COCO) <= _top_label(network, images) < len(VOCABULARIES["coco91"]):
        why = (
            f"label {_top_label(network, images)} was predicted, and of the usual lists only this one has it"
        )
        return with_names(network, "coco91"), f"classes: coco91 is a guess: {why}.", False
    if data is None:
        fix = (
            "name them with classes=, such as coco80 or coco91, or give labelled images with --data DATASET, "
            "and vocabularies are tried"
        )
        return with_names(network, "dataset"), f"{said}; {fix}.", False
    scored = try_vocabularies(network, data, watch, count)
    if not scored or max(scored.values()) == 0:
        own = f"its {count} classes" if count else "them"
        fix = f"none of those tried finds anything on these images; name {own} with classes="
        return with_names(network, "dataset"), f"{said}; {fix}.", False
    (best, score), *others = sorted(scored.items(), key=lambda item: -item[1])
    count = min(IMAGES, len(data))
    if others and others[0][1] == score:
        tie = f"{best} and {others[0][0]} score the same on {count} images"
        return with_names(network, best), f"classes: {best}; {tie}, so check them.", False
    if not others:
        said = f"classes: {best}, the only list tried that names every label predicted on {count} images"
        return with_names(network, best), f"{said}; it scores {100 * score:.1f}.", True
    rest = f"; the next, {others[0][0]}, {100 * others[0][1]:.1f}"
    said = f"classes: {best} scores best of {len(scored)} on {count} images ({100 * score:.1f}{rest})."
    return with_names(network, best), said, True


def _name_only_class(network: Network, data: OpenedDataset | None) -> tuple[Network, str, bool]:
    """The name of a detector's only class: the dataset's, if it has one too."""
    said = "as its outputs score a single class"
    if data is not None and len(data.classes) == 1:
        (name,) = data.classes
        return with_names(network, [name]), f"classes: [{name}], {said}, and {data.name} has one.", True
    fix = "write the name of what it finds, as the dataset calls it"
    return with_names(network, ["object"]), f"classes: [object], {said}; {fix}.", False


def with_names(network: Network, classes: str | list[str]) -> Network:
    """The network with other classes."""
    card = network.card.model_copy(update={"classes": classes})
    return replace(network, card=card, names=resolve_classes(classes, None) or ())


def _is_single_plane(network: Network, probe: Probe) -> bool:
    """Whether a segmenter has one plane of scores: foreground against background."""
    if network.card.decoder != "logits" or not probe.outputs:
        return False
    wanted = (network.card.outputs or [probe.outputs[0].name])[0]
    shape = next((output.shape for output in probe.outputs if output.name == wanted), ())
    axis = -1 if network.card.options.get("channels_last") else 1
    return len(shape) == 4 and shape[axis] == 1


def try_vocabularies(
    network: Network, data: OpenedDataset, watch: Watch = show_nothing, count: int | None = None
) -> dict[str, float]:
    """The score on labelled images by vocabulary; the dataset's own classes come last. Only lists of `count`
    names are tried, if the network shows how many it needs."""
    own = data.semantic_classes if network.semantic_task else data.classes
    lists = {**{one: VOCABULARIES[one] for one in _vocabularies(network, data)}, "dataset": own}
    tried = [one for one, names in lists.items() if count in (None, len(names))]
    images, clean = min(IMAGES, len(data)), {}
    with (
        TemporaryDirectory(prefix="stormproof-") as folder,
        watch("trying classes", len(tried), "lists") as shown,
    ):
        for vocabulary in tried:
            scores = score_clean(with_names(network, vocabulary), data, Path(folder) / vocabulary, images)
            if scores is not None:
                clean[vocabulary] = scores.score(scores.headline)
            shown.advance()
    return clean


def _vocabularies(network: Network, data: OpenedDataset) -> list[str]:
    """The vocabularies that name every label predicted on a few images, and that share at least half as many
    names with the dataset as the one that shares most."""
    truth = data.semantic_classes if network.semantic_task else data.classes
    top = _top_label(network, [data[i].image for i in range(min(_GLANCE, len(data)))])
    shared = {one: len({*_labels(names, truth)} - {NO_CLASS}) for one, names in VOCABULARIES.items()}
    most = max(shared[one] for one, names in VOCABULARIES.items() if len(names) > top or not names)
    return [
        one
        for one, names in VOCABULARIES.items()
        if len(names) > top and names and 2 * shared[one] >= most > 0
    ]


def _top_label(network: Network, images: Sequence[Image]) -> int:
    """The highest label predicted on some images."""
    predictions = with_names(network, "dataset")(images)
    maps = [int(one.semantic.max(initial=0)) for one in predictions if one.semantic is not None]
    return max([*maps, *(int(one.labels.max(initial=0)) for one in predictions)], default=0)


def _labels(names: Sequence[str], truth: Sequence[str]) -> tuple[int, ...]:
    try:
        return match_classes(names, truth).labels if names else ()
    except StormproofError:  # spellings that could mean two classes
        return ()
