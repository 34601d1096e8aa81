"""A model card: the small YAML file that says how to feed a network and how to read its outputs.

Whatever the card leaves out is taken from the network's graph, then from what networks of its kind
usually do. Unknown keys are errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)

from stormproof.core.errors import ModelError, UnknownName
from stormproof.core.files import expand, read_yaml
from stormproof.core.spec import keyword_options
from stormproof.models.candidates import Limits
from stormproof.models.decoders import DECODERS
from stormproof.models.geometry import Align, Interpolation, Resize, Rounding

Triple = tuple[float, float, float]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class InputCard(_Strict):
    """What the network is fed. `mean` and `std` are in grey levels 0–255, in the order of `channels`."""

    size: tuple[int, int] | None = None  # height, width; short and long side where resize is 'shortest'
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

    @field_validator("mean", "std", mode="before")
    @classmethod
    def _three(cls, value: Any) -> Any:
        return (value,) * 3 if isinstance(value, int | float) else value

    @field_validator("size", mode="before")
    @classmethod
    def _square(cls, value: Any) -> Any:
        return (value, value) if isinstance(value, int) else value

    @model_validator(mode="after")
    def _size_known(self) -> InputCard:
        if self.size is None and self.resize != "none":
            raise ValueError(f"size is missing: write size: [height, width] for resize: {self.resize}")
        if self.size is not None and min(self.size) < 1:
            raise ValueError(f"size {self.size} must be at least 1×1")
        if 0 in self.std:
            raise ValueError("std must not be 0")
        return self


class Card(_Strict):
    """Everything about a network that its weights do not say."""

    name: str | None = None
    classes: str | list[str] | None = None
    rename: dict[str, str] = Field(default_factory=dict)
    input: InputCard
    decoder: str
    outputs: list[str] | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    label_offset: int = 0
    size_input: str | None = None
    score: float = Field(default=0.01, ge=0, le=1)
    iou: float | None = Field(default=None, ge=0, le=1)
    keep: int = Field(default=100, ge=1)

    @field_validator("decoder")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in DECODERS:
            raise UnknownName("decoder", value, DECODERS, f"Decoders: {', '.join(DECODERS)}.")
        return value

    @model_validator(mode="after")
    def _decoder_options(self) -> Card:
        declared = _options_of(self.decoder)
        known = [*declared.model_fields]
        for key in self.options:
            if key not in known:
                hint = f"It takes: {', '.join(known) or 'none'}."
                raise UnknownName(f"option of decoder {self.decoder!r}", key, known, hint)
        object.__setattr__(self, "options", declared(**self.options).model_dump(exclude_unset=True))
        return self

    @property
    def limits(self) -> Limits:
        return Limits(self.score, self.keep, DECODERS[self.decoder].iou if self.iou is None else self.iou)


def _options_of(decoder: str) -> type[BaseModel]:
    """The options of a decoder as a schema: its keyword-only parameters."""
    parameters = keyword_options(DECODERS[decoder].function).values()
    fields = {p.name: (p.annotation, p.default) for p in parameters}
    made: type[BaseModel] = create_model(f"options of {decoder}", __base__=_Strict, **fields)  # type: ignore[call-overload]
    return made


def read_card(model: Path | None, card: str | None) -> tuple[dict[str, Any], Path | None]:
    """The card given, else `model.yaml` beside `model.onnx`, else nothing; and where it was found."""
    path = expand(card, error=ModelError) if card is not None else model and model.with_suffix(".yaml")
    if path is None or (card is None and not path.is_file()):
        return {}, None
    content = read_yaml(path, error=ModelError)
    if not isinstance(content, dict):
        raise ModelError(
            f"{path}: a model card is a YAML mapping, not {type(content).__name__}; see docs/models.md."
        )
    return content, path


def complete_card(
    guess: Mapping[str, Any], card: Mapping[str, Any], where: object, outputs: str = ""
) -> Card:
    """What the card says over what was guessed, checked; `where` names the card in errors, `outputs` what the
    network gives."""
    merged = {**guess, **card}
    decoder = merged.get("decoder")
    usual = DECODERS[decoder].usual if isinstance(decoder, str) and decoder in DECODERS else {}
    known = guess.get("input", {})
    given = card.get("input") or {}
    if not isinstance(given, Mapping):
        raise ModelError(f"{where}: input is {given!r:.60}; write input: with indented keys below it.")
    if {**known, **given}.get("dtype") in ("uint8", "int8"):  # such networks normalise inside
        usual = {key: value for key, value in usual.items() if key not in ("mean", "std")}
    if "size" in known and usual.get("resize") == "none":  # exported for one size, whatever is usual
        usual = {**usual, "resize": "stretch"}
    merged["input"] = {**usual, **known, **given}
    if decoder is None:
        raise ModelError(
            f"{where}: how to read the outputs{' ' + outputs if outputs else ''} cannot be told "
            f"from the graph; write decoder: in a card, one of {', '.join(DECODERS)} (docs/models.md)."
        )
    try:
        return Card.model_validate(merged)
    except UnknownName as error:
        raise ModelError(f"{where}: {error}") from None
    except ValidationError as error:
        raise ModelError(f"{where}: {_first(error)}") from None


def _first(error: ValidationError) -> str:
    details = error.errors()
    lines = [f"{'.'.join(map(str, d['loc'])) or 'card'}: {d['msg']}, not {d['input']!r:.60}" for d in details]
    return "; ".join(lines[:3]) + "."
