"""Domains: odd.yaml as written, cells and their worst corners, and clear errors for wrong ones."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption
from stormproof.results.domain import Domain
from stormproof.results.domain_file import parse_domain, read_domain
from stormproof.results.domain_records import domain_tags
from stormproof.results.domain_verdicts import inside, place_of

SHUTTLE: dict[str, Any] = {
    "odd": "Shuttle in town",
    "dimensions": {
        "visibility": {"unit": "m", "cells": {"fog": [100, 300], "haze": [300, 1000], "clear": "clear"}},
        "illuminance": {"unit": "lux", "cells": {"night": [5, 30], "dusk": [30, "day"]}},
        "rain": {"unit": "mm/h", "range": [0, 10]},
        "distance": {"unit": "m", "cells": {"near": [0, 15], "far": [15, 30]}},
        "weather": {"tag": "weather", "values": {"dry": ["clear", "overcast"], "wet": ["rainy"]}},
    },
    "requirements": [
        {"id": "R1", "found": "person", "at_least": 0.9, "where": {"distance": "near"}},
        {"id": "R2", "metric": "AP50", "at_least": 0.3},
    ],
    "outside": ["snow", {"visibility": "fog", "illuminance": "night"}],
}


def changed(**parts: Any) -> dict[str, Any]:
    """The shuttle's domain with some dimensions replaced, or removed if None."""
    made = copy.deepcopy(SHUTTLE)
    for name, value in parts.items():
        if value is None:
            del made["dimensions"][name]
        else:
            made["dimensions"][name] = value
    return made


@pytest.fixture
def shuttle(tmp_path: Path) -> Domain:
    path = tmp_path / "odd.yaml"
    path.write_text(yaml.safe_dump(SHUTTLE, sort_keys=False))
    return read_domain(path)


def test_cells_are_all_combinations_but_those_outside(shuttle: Domain) -> None:
    near, measure = shuttle.requirements
    assert len(shuttle.cells(near)) == (3 * 2 - 1) * 1 * 1 * 2
    assert len(shuttle.cells(measure)) == (3 * 2 - 1) * 2, "objects' attributes do not cut a measure"
    assert not any(
        {("visibility", "fog"), ("illuminance", "night")} <= {*cell} for cell in shuttle.cells(near)
    )


def test_a_corner_is_the_worst_end_of_every_quantity(shuttle: Domain) -> None:
    cell = (("visibility", "haze"), ("illuminance", "night"), ("rain", "0–10 mm/h"), ("weather", "dry"))
    assert [*map(str, shuttle.corners(cell))] == ["haze[visibility=300]+rain[rate=10]+night[lux=5]"]
    cell = (("visibility", "clear"), ("illuminance", "dusk"), ("rain", "0–10 mm/h"))
    assert [*map(str, shuttle.corners(cell))] == ["rain[rate=10]+night[lux=30]"]


def test_faults_of_the_camera_have_a_corner_each() -> None:
    faults = {"corruptions": ["motion_blur", "defocus_blur"], "unit": "severity", "range": [0, 3]}
    content = changed(visibility=None, illuminance=None, rain=None, weather=None, faults=faults)
    content["outside"] = []
    domain = parse_domain(content, "odd.yaml")
    cell = domain.cells(domain.requirements[1])[0]
    assert [*map(str, domain.corners(cell))] == ["motion_blur@3", "defocus_blur@3"]


def places(domain: Domain, text: str) -> list[dict[str, str]]:
    """The cells that a condition lies in."""
    place = place_of(domain, Condition.parse(text))
    cells = domain.cells(domain.requirements[1])
    return [] if place is None else [dict(cell) for cell in cells if inside(domain, cell, place)]


def test_a_condition_lies_in_the_cells_of_its_values(shuttle: Domain) -> None:
    assert {(cell["visibility"], cell["illuminance"]) for cell in places(shuttle, "clean")} == {
        ("clear", "dusk")
    }
    two = places(shuttle, "haze[visibility=300]+night[lux=20]")
    assert {(cell["visibility"], cell["illuminance"]) for cell in two} == {("haze", "night")}
    assert {cell["visibility"] for cell in places(shuttle, "haze[visibility=100]")} == {"fog"}
    assert {cell["visibility"] for cell in places(shuttle, "haze[beta=0.0196]")} == {"fog"}, "199.6 m"
    assert places(shuttle, "haze[visibility=90]") == []
    assert places(shuttle, "rain[rate=20]") == []
    assert places(shuttle, "fog@3") == [], "no dimension knows it"
    assert places(shuttle, "haze@3[on=person]") == [], "only a part of the image"


@pytest.mark.parametrize(
    "text", ["clean", "night[lux=30]", "haze[visibility=300]", "night[lux=29.9]+rain[rate=10]"]
)
def test_a_condition_lies_in_one_cell_of_a_dimension(shuttle: Domain, text: str) -> None:
    place = place_of(shuttle, Condition.parse(text))
    assert place is not None
    for dimension in shuttle.dimensions:
        if dimension.kind == "quantity":
            value = place[dimension.name][1]
            assert sum(dimension.contains(part, value) for part in dimension.parts) == 1, dimension.name


def test_gaps_are_named_as_outside(shuttle: Domain) -> None:
    assert shuttle.gaps == ["visibility above 1000 m, short of clear"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"visibility": {"range": [100, 300]}}, "visibility has no unit; add unit: m"),
    ({"visibility": {"unit": "km", "range": [1, 3]}}, "ranges of it are in m: convert"),
    ({"visibility": {"unit": "m", "range": [300, 300]}}, r"the range \[300, 300\] is empty"),
    ({"visibility": {"unit": "m", "range": [300, 100]}}, "upside down; give the lower end first"),
    ({"visibility": {"unit": "m", "range": [100]}}, r"a range is \[low, high\]"),
    ({"visibility": {"unit": "m", "range": ["dark", 300]}}, "or the word clear"),
    ({"visibility": {"unit": "m", "range": [100, 10**400]}}, "or the word clear"),
    ({"visibility": {"unit": "m"}}, "give either range"),
    ({"visibility": {"unit": "m", "cells": {}}}, "cells is empty"),
    ({"visibility": {"unit": "m", "cells": {"a": [100, 300], "b": [250, 900]}}}, "a .* and b .* overlap"),
    ({"illuminance": {"unit": "lux", "range": [5, 100]}}, "end at 40 or at day"),
    ({"rain": {"unit": "mm/h", "range": [0, 3000]}}, "rain, 0–3000 mm/h: .*300"),
    ({"speed": {"unit": "km/h", "range": [0, 25]}}, "Unknown dimension 'speed'.*corruption: NAME.*tag: NAME"),
    ({"visibilty": {"unit": "m", "range": [0, 25]}}, "Did you mean 'visibility'"),
    ({"focus": {"corruption": "defokus_blur", "unit": "severity", "range": [0, 3]}}, "defocus_blur"),
    ({"focus": {"corruption": "defocus_blur", "parameter": "radius", "unit": "px", "range": [1, 3]}},
     "worse: low"),
    ({"faults": {"corruptions": [], "unit": "severity", "range": [0, 3]}}, "corruptions is"),
    ({"faults": {"corruption": "haze", "unit": "severity", "range": [0, 6]}}, "severity"),
    ({"mist": {"corruption": "haze", "parameter": "visibility", "worse": "low", "unit": "m",
              "range": [1, 9]}},
     "visibility and mist are both haze visibility; keep one"),
    ({"weather": {"tag": "weather"}}, "list the tag's values"),
    ({"weather": {"tag": "weather", "values": {"a": ["x"], "b": ["x", "y"]}}}, "overlap: both have x"),
    ({"weather": {"tag": "weather", "unit": "m", "values": ["x"]}}, "a tag has values, not unit"),
    ({"visibility": {"unit": "m", "rang": [100, 300]}}, "Did you mean 'range'"),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "said"), WRONG, ids=[str(k) for k in range(len(WRONG))])
def test_a_wrong_dimension_is_refused_with_a_fix(parts: dict[str, Any], said: str) -> None:
    content = changed(**parts)
    content["outside"] = []
    with pytest.raises(InvalidOption, match=said):
        parse_domain(content, "odd.yaml")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "R1", "found": "person"}, "give one bound, at_least"),
        ({"id": "R1", "found": "person", "at_least": 95}, "write 0.95"),
        ({"id": "R1", "found": "person", "at_least": 10**400}, "not a number"),
        ({"id": "R1", "metric": "AP55", "at_least": 0.5}, "Did you mean 'AP75'"),
        ({"id": "R1", "metric": "Miss share", "at_least": 0.5}, "give one bound, at_most"),
        ({"id": "R1", "metric": "AP50", "found": "person", "at_least": 0.5}, "give either found"),
        ({"id": "R1", "metric": "AP50", "at_least": 0.5, "where": {"distance": "near"}}, "false positives"),
        ({"id": "R1", "found": "person", "at_least": 0.5, "where": {"distance": "nea"}}, "mean 'near'"),
        ({"id": "R1", "found": "person", "at_least": 0.5, "where": {"distanc": "near"}}, "mean 'distance'"),
        ({"found": "person", "at_least": 0.5}, "has no id"),
        ({"id": "R1", "found": "person", "at_least": 0.5,
          "where": {"visibility": "fog", "illuminance": "night"}}, "every cell that it is for lies outside"),
    ],
)  # fmt: skip
def test_a_wrong_requirement_is_refused_with_a_fix(row: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        parse_domain({**SHUTTLE, "requirements": [row]}, "odd.yaml")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([], "must hold 'odd'"),
        ({**SHUTTLE, "odd": ""}, "has no name"),
        ({**SHUTTLE, "dimensions": {}}, "has no cells"),
        ({**SHUTTLE, "requirements": []}, "nothing would be judged"),
        ({**SHUTTLE, "requirements": SHUTTLE["requirements"][:1] * 2}, "two requirements have the id 'R1'"),
        ({**SHUTTLE, "outside": [{"visibility": "mist"}]}, "outside 1: .*Has: fog, haze, clear"),
        ({**SHUTTLE, "planned_images": 3}, "planned_images is 3"),
        ({**SHUTTLE, "demands": []}, "Unknown key 'demands'"),
    ],
)
def test_a_wrong_file_is_refused_with_a_fix(content: Any, said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        parse_domain(content, "odd.yaml")


def test_a_domain_becomes_openlabel_tags(shuttle: Domain) -> None:
    made = domain_tags(shuttle, "odd.yaml")["openlabel"]
    tags = {tag["type"]: tag for tag in made["tags"].values()}
    assert tags["WeatherRain"]["ontology_uid"] == "0"
    assert tags["WeatherRain"]["tag_data"]["vec"] == [
        {"name": "weatherRainValue", "type": "range", "val": [0, 10]}
    ]
    assert tags["ParticulatesWater"]["tag_data"]["num"] == [{"name": "visibility", "type": "min", "val": 100}]
    assert tags["weather"]["tag_data"]["vec"][0]["val"] == ["clear", "overcast", "rainy"]
