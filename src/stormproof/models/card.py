"""A model card: the small YAML file that says how to feed a network and how to read its outputs.

Settings that the card leaves out come from the network's graph, then from the defaults of its decoder.
Unknown keys are errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, create_model, model_validator

from stormproof.core.errors import ModelError, UnknownName
from stormproof.core.files import expand, read_yaml
from stormproof.core.spec import keyword_options
from stormproof.models.candidates import Limits
from stormproof.models.classes import is_background, resolve_classes
from stormproof.models.decoders import DECODERS
from stormproof.models.geometry import Align, Interpolation, Resize, Rounding


def _repeat(count: int) -> BeforeValidator:
    """A single number is repeated for every entry."""
    return BeforeValidator(lambda value: (value,) * count if isinstance(value, int | float) else value)


Triple = Annotated[tuple[float, float, float], _repeat(3)]
Pair = Annotated[tuple[int, int], _repeat(2)]
Schema = TypeVar("Schema", bound=BaseModel)
COCO_NUMBERS = ("postprocessed", "efficientdet-rows")  # families whose COCO networks use COCO's own numbers


class InputCard(BaseModel, extra="forbid", frozen=True):
    """The network's input. `mean` and `std` are in grey levels 0–255, in the order of `channels`."""

    size: Pair | None = None  # height, width; short and long side where resize is 'shortest'
    layout: Literal["NCHW", "NHWC"] = "NCHW"
    dtype: Literal["float32", "float16", "uint8", "int8"] = "float32"
    channels: Literal["RGB", "BGR"] = "RGB"
    resize: Resize = "stretch"
    align: Align = "centre"
    pad: int = Field(default=0, ge=0, le=255)
    multiple: int = Field(default=1, ge=1)
    rounding: Rounding = "nearest"
    interpolation: Interpolation = "linear"
    mean: Triple = (0.0, 0.0, 0.0)
    std: Triple = (1.0, 1.0, 1.0)

    @model_validator(mode="after")
    def _check(self) -> InputCard:
        if self.size is None and self.resize != "none":
            raise ValueError(f"size is missing: write size: [height, width] for resize: {self.resize}")
        if self.size is not None and min(self.size) < 1:
            raise ValueError(f"size {self.size} must be at least 1×1")
        if 0 in self.std:
            raise ValueError("std must not be 0")
        return self


class NamingCard(BaseModel, extra="forbid", frozen=True):
    """What a model is called and what its labels mean; models that feed themselves have no other card."""

    name: str | None = None
    classes: str | list[str] | None = None
    rename: dict[str, str] = Field(default_factory=dict)


class Card(NamingCard, extra="forbid", frozen=True):
    """Everything about a network that its weights do not contain. Limits default to the decoder's."""

    input: InputCard
    decoder: str
    outputs: list[str] | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    label_offset: int = 0
    size_input: str | None = None
    score: float = Field(ge=0, le=1)
    iou: float | None = Field(default=None, ge=0, le=1)
    keep: int = Field(ge=1)

    @model_validator(mode="after")
    def _check(self) -> Card:
        """A decoder's options are its keyword-only parameters."""
        known = keyword_options(DECODERS[self.decoder].function)
        for key in self.options:
            if key not in known:
                hint = f"It takes: {', '.join(known) or 'none'}."
                raise UnknownName(f"{self.decoder} decoder option", key, known, hint)
        fields: dict[str, Any] = {name: (p.annotation, p.default) for name, p in known.items()}
        declared = create_model(f"options of {self.decoder}", **fields)
        object.__setattr__(self, "options", declared(**self.options).model_dump(exclude_unset=True))
        return self

    @property
    def limits(self) -> Limits:
        usual = DECODERS[self.decoder].limits
        return Limits(self.score, self.keep, usual.iou if self.iou is None else self.iou)


def read_card(model: Path | None, card: str | None) -> tuple[dict[str, Any], Path | None]:
    """The card given, else `model.yaml` beside `model.onnx`, else nothing; and its path."""
    path = expand(card, error=ModelError) if card is not None else model and model.with_suffix(".yaml")
    if path is None or (card is None and not path.is_file()):
        return {}, None
    content = read_yaml(path, error=ModelError)
    if not isinstance(content, dict):
        kind = type(content).__name__
        raise ModelError(f"{path}: a model card is a YAML mapping, not {kind}; see docs/models.md.")
    return content, path


def complete_card(guess: Mapping[str, Any], card: Mapping[str, Any], where: object, unread: str = "") -> Card:
    """Merge the card over what was guessed over the decoder's defaults, and check the result.

    Errors name the card by `where`; `unread` says why no decoder was guessed.
    """
    if card.get("decoder") not in (None, guess.get("decoder")):  # another decoder has other options
        guess = {key: value for key, value in guess.items() if key != "options"}
    merged = {**guess, **card}
    decoder, known, given = merged.get("decoder"), guess.get("input", {}), card.get("input") or {}
    if not isinstance(given, Mapping):
        raise ModelError(f"{where}: input is {given!r:.60}; write input: with indented keys below it.")
    if decoder is None:
        raise ModelError(
            f"{where}: {unread or 'nothing says how to read its outputs; write decoder: in a card.'}"
        )
    if str(decoder) not in DECODERS:
        unknown = UnknownName("decoder", str(decoder), DECODERS, f"Decoders: {', '.join(DECODERS)}.")
        raise ModelError(f"{where}: {unknown}")
    usual, limits = DECODERS[decoder].usual, DECODERS[decoder].limits
    merged = {"score": limits.score, "keep": limits.keep, **merged}
    if {**known, **given}.get("dtype") in ("uint8", "int8"):  # such networks normalise inside
        usual = {key: value for key, value in usual.items() if key not in ("mean", "std")}
    if "size" in known and usual.get("resize") == "none":  # exported for a fixed size, whatever is usual
        usual = {**usual, "resize": "stretch"}
    merged["input"] = {**usual, **known, **given}
    if merged["input"].get("size") is None and merged["input"].get("resize") != "none":
        raise ModelError(
            f"{where}: the network takes images of any size, so nothing says which suits it; write input: "
            "{size: [640, 640]} in a card, or let 'stormproof inspect FILE --fix CARD.yaml' write one."
        )
    return check_card(Card, merged, where)


def check_card(schema: type[Schema], values: Mapping[str, Any], where: object) -> Schema:
    """`values` as a card, or part of one."""
    try:
        return schema.model_validate(values)
    except UnknownName as error:
        raise ModelError(f"{where}: {error}") from None
    except ValidationError as error:
        details = [(".".join(map(str, e["loc"])), e["msg"], e["input"]) for e in error.errors()[:3]]
        lines = (f"{place or 'card'}: {message}, not {given!r:.60}" for place, message, given in details)
        raise ModelError(f"{where}: {'; '.join(lines)}.") from None


def assemble_card(
    file: Path | None,
    card: str | None,
    guess: Mapping[str, Any],
    settings: Mapping[str, Any],
    name: str,
    unread: str = "",
) -> tuple[Card, tuple[str, ...]]:
    """A network's card and class names: the spec's settings over the card file over what was guessed.

    `card` names the card file; by default it lies beside the network's `file`. Errors call the network `name`
    and, where no decoder is known, say why: `unread`.
    """
    given, place = read_card(file, card)
    given |= {key: value for key, value in settings.items() if value is not None and key != "options"}
    given |= _with_options(guess, given, settings.get("options") or {})
    whole = complete_card(guess, given, place or file or name, unread)
    if whole.decoder == "efficientdet-rows" and whole.classes == "coco80":
        raise ModelError(f"{name}: EfficientDet outputs COCO's own numbers, up to 90; write classes=coco91.")
    # A card names text files relative to itself; a spec relative to the working directory.
    near = place.parent if place and settings.get("classes") is None else None
    return whole, _class_names(whole, near, name)


def _with_options(
    guess: Mapping[str, Any], given: Mapping[str, Any], texts: Mapping[str, str]
) -> dict[str, Any]:
    """The options of the decoder where a spec sets some of them, as in options.fractions=true."""
    if not texts:
        return {}
    same = given.get("decoder") in (None, guess.get("decoder"))
    held = given.get("options") or (guess.get("options", {}) if same else {})
    try:
        return {"options": {**held, **{key: yaml.safe_load(text) for key, text in texts.items()}}}
    except (yaml.YAMLError, TypeError) as error:
        raise ModelError(f"options {dict(texts)} cannot be read ({' '.join(str(error).split())}).") from None


def _class_names(card: Card, near: Path | None, name: str) -> tuple[str, ...]:
    """The class names, some of them renamed by the card."""
    names = resolve_classes(card.classes, near)
    if names is None:
        plane = ", such as [background, person] for a single plane" if card.decoder == "logits" else ""
        first, second = ("coco80", "coco91")[:: -1 if card.decoder in COCO_NUMBERS else 1]
        raise ModelError(
            f"{name}: the graph does not name its classes; add ,classes={first} (or {second}, voc21, "
            f"cityscapes19, a text file, a list such as [cat,dog]) or write classes: in the card{plane}; "
            "classes=dataset means that its labels index the dataset's classes. 'stormproof inspect FILE "
            "--data DATASET --fix CARD.yaml' finds out."
        )
    if DECODERS[card.decoder].task == "semantic" and len(names) == 1 and not is_background(names[0]):
        names = ("background", *names)  # the only class of a map is its foreground
    return rename_classes(names, card.rename, f"the card of {name}")


def rename_classes(names: Sequence[str], changes: Mapping[str, str], where: str) -> tuple[str, ...]:
    """Class names, some of them renamed; several may get the same name, and then count as one."""
    for old in changes:
        if old not in names:
            raise UnknownName(f"class to rename in {where}", old, names)
    return tuple(changes.get(old, old) for old in names)


def chosen_outputs(asked: Sequence[str] | None, known: Sequence[str]) -> Sequence[str]:
    """The outputs that the card names, which the network must have; all outputs if the card names none."""
    missing = [name for name in asked or () if name not in known]
    if missing:
        raise ModelError(f"outputs: {missing} are not among the network's, which are {list(known)}.")
    return asked or known
