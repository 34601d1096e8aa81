"""map.json read again, for a domain of the same run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stormproof.core.errors import InvalidOption
from stormproof.core.files import read_json
from stormproof.results.store.record import RunRecord, read_record
from stormproof.results.surface import GRID

MAP = "map.json"
_Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Above = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
_Values = Annotated[list[_Finite], Field(min_length=GRID**2, max_length=GRID**2)]


class _Read(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Axis(_Read):
    name: str
    title: str
    from_: _Above = Field(alias="from")
    to: _Above
    scale: Literal["linear", "log"]
    corruption: str | None


class _Grid(_Read):
    score: _Values
    low: _Values
    high: _Values


class _Map(_Read):
    """What is drawn of a map."""

    x: _Axis
    y: _Axis
    measure: str
    threshold: _Finite
    higher: bool
    level: str
    grid: _Grid


def read_map(folder: Path, of: RunRecord | None = None) -> dict[str, Any]:
    """The map of a folder of `stormproof map`; with `of`, that of another model or dataset is refused."""
    path = folder / MAP
    again = "draw it again with 'stormproof map'"
    content = read_json(path, error=InvalidOption)
    try:
        read = _Map.model_validate(content)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "the whole"
        raise InvalidOption(f"{path} is not a map: {where} is wrong; {again}.") from None
    for name, axis in (("x", read.x), ("y", read.y)):
        if not axis.from_ < axis.to:
            raise InvalidOption(
                f"{path}: {name} goes from {axis.from_:g} to {axis.to:g}, which is not a range; {again}."
            )
    if of is not None:
        _require_same(read_record(folder), of, folder)
    return dict(content)


def _require_same(of_map: RunRecord, record: RunRecord, folder: Path) -> None:
    for what, drawn, judged in (
        ("model", of_map.model, record.model), ("dataset", of_map.dataset, record.dataset),
    ):  # fmt: skip
        if drawn.fingerprint != judged.fingerprint:
            raise InvalidOption(
                f"--map {folder} is of another {what} than the run, {drawn.name} instead of {judged.name}; "
                "draw a map of this run: stormproof map RUN …"
            )
