"""What `odd`, `map` and `explore` are given: domains, maps, axes, composed conditions, requests of a page."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from fuzz.dataset_targets import lay, quietly
from fuzz.mutate import HOSTILE, json_bytes, mutate, strewn, tree
from fuzz.run_targets import scored_runs
from stormproof.core.condition import Condition
from stormproof.corruptions.grammar import read_conditions

_CONDITIONS = (
    "fog@1+snow@2", "night[lux=5]+rain@1-3", "haze[visibility=300]+jpeg_compression@3+pixelate@1",
    'fog@3[on="traffic light"]+snow@1', "fog+snow", "fog@2.5+frost@3[textures=my/frost]", "imagenet-c+fog@1",
    "storms", "fog@1+snow@2,night[lux=5]+fog@1",
)  # fmt: skip
_TOKENS = (
    "+", "++", "+clean", "clean+", "@", "@3", "[", "]", ",", "=", '"', "\\", "1e999", "-1", "\0", "é", " + ",
    "+fog@1" * 300, "+imagenet-c" * 3, "lux=1,lux=2", "+imagenet-c@1-5+fog", "9" * 5000,
)  # fmt: skip


def composed(dice: random.Random, folder: Path) -> None:
    """Conditions in a row: each is read as it prints, with as many parts as it has plus signs and one."""
    text = strewn(dice.choice(_CONDITIONS), _TOKENS, dice.choice((0, 1, 2, 3)), dice)
    quietly(lambda: _round_trip(text))
    quietly(lambda: [_round_trip(str(condition)) for condition in read_conditions(text)[:200]])


def _round_trip(text: str) -> None:
    condition = Condition.parse(text)
    assert Condition.parse(str(condition)) == condition
    for part in condition.parts:
        assert Condition.parse(str(part)) == part


_AXES = (
    "haze[visibility=50..1000]", "rain[rate=2..200, wiped=2]", "fog@1..5", "night[lux=1..1000]",
    "distance=5..80", "size=10..1e4", "gaussian_noise[sigma=0.01..0.3]", 'fog@1..5[on="traffic light"]',
)  # fmt: skip
_AXIS_TOKENS = (
    "..", ".", "=", "[", "]", ",", "@", "e9", "1e999", "1e-400", "-1", "0", "nan", "9" * 5000, "\0", "é", "٣",
    "123456789", "inf", "visibility=3",
)  # fmt: skip
_REQUIRE = ("AP50>=0.4", "found>=0.5", "AP>=0.3", "oLRP<=0.7", "mIoU>=0.5")


def plane(dice: random.Random, folder: Path) -> None:
    """Arguments of `map`: an axis that is read begins and ends where it says, to four digits."""
    from stormproof.results.breaking import parse_requirement
    from stormproof.results.maps import Plane, parse_map_axis
    from stormproof.results.truths import class_names

    changes = dice.choice(((1, 0, 0), (2, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 2), (0, 0, 0)))
    x, y, require = (
        strewn(dice.choice(words), _AXIS_TOKENS, times, dice)
        for words, times in zip((_AXES, _AXES, _REQUIRE), changes, strict=True)
    )
    axes = [parse_map_axis(x, "--x"), parse_map_axis(y, "--y")]
    for axis in axes:
        for place, end in ((0.0, axis.low), (1.0, axis.high)):
            assert abs(axis.value(place) - end) <= 0.01 + 1e-3 * end, (x, y, axis)
    measure, threshold = parse_requirement(require)
    made = Plane(*axes, measure, threshold, class_names(dice.choice(("person", ",", "person,,car", "\0"))))
    if made.y.over is not None:
        point = dice.random(), dice.random()
        condition = made.condition(point)
        assert Condition.parse(str(condition)) == condition


_DOMAIN = b"""odd: Shuttle in town
dimensions:
  visibility: {unit: m, cells: {fog: [100, 300], clear: clear}}
  illuminance: {unit: lux, cells: {night: [5, 40], day: day}}
  fog: {unit: severity, corruption: fog, cells: {light: [1, 3], none: 0}}
  sharpness: {unit: px, corruption: defocus_blur, parameter: radius, worse: high,
              with: {softness: 0.5}, range: [1, 4]}
  weather: {tag: weather, values: [clear, rainy]}
  distance: {unit: m, cells: {near: [0, 15], far: [15, 30]}}
requirements:
  - {id: R1, found: bright, at_least: 0.6, where: {distance: near}, min_score: 0.3}
  - {id: R2, metric: AP50, at_least: 0.3, where: {visibility: [fog, clear]}}
  - {id: R3, metric: oLRP, at_most: 0.7}
outside:
  - snow
  - {visibility: fog, illuminance: night}
planned_images: 500
"""
_SHORT = b"""odd: Fog
dimensions:
  haze: {unit: severity, corruption: fog, cells: {mist: [1, 2], none: 0}}
  contrast: {unit: severity, corruption: contrast, cells: {pale: [1, 2], none: 0}}
requirements:
  - {id: R1, metric: AP50, at_least: 0.3}
  - {id: R2, found: dog, at_least: 0.3}
"""


def domain(dice: random.Random, folder: Path) -> None:
    """odd.yaml, its cells and tags; a short one as it is judged by a run, with the page and the statement."""
    from stormproof.report.odd_page import odd_page
    from stormproof.results.domain_file import read_domain
    from stormproof.results.domain_records import domain_statement, domain_tags, row_as_dict, verdicts_csv
    from stormproof.results.domain_verdicts import judge_domain
    from stormproof.results.run import Run

    _map_and_verdicts()  # which compiles what verdicts need, before the clock runs
    path = folder / "odd.yaml"
    judged = dice.random() < 0.15
    path.write_bytes(mutate("odd.yaml", _SHORT if judged else _DOMAIN, dice))
    asked = read_domain(path)
    for requirement in asked.requirements:
        assert asked.cells(requirement)
    json.dumps(domain_tags(asked, path.name))
    if judged:
        run = Run(Path(next(iter(scored_runs()))))
        verdicts = judge_domain(asked, run, [], replicates=50)
        odd_page(verdicts, "again", [])
        verdicts_csv(verdicts)
        json.dumps([row_as_dict(verdicts, row) for row in verdicts.rows])
        json.dumps(domain_statement(verdicts, run, path, [], replicates=50))


_MAPPED = b"""odd: Haze at night
dimensions:
  visibility: {unit: m, cells: {fog: [100, 300], clear: clear}}
  illuminance: {unit: lux, cells: {night: [5, 40], day: day}}
requirements:
  - {id: R1, metric: AP50, at_least: 0.3}
  - {id: R2, found: dog, at_least: 0.3}
"""


@lru_cache(maxsize=1)
def _map_and_verdicts() -> tuple[Any, Any]:
    """A map of two corruptions as it is kept, and verdicts on a domain of the same two."""
    import numpy as np
    import yaml

    from stormproof.results.domain_file import parse_domain
    from stormproof.results.domain_verdicts import judge_domain
    from stormproof.results.maps import parse_map_axis
    from stormproof.results.run import Run
    from stormproof.results.surface import GRID

    axes = {
        name: parse_map_axis(text, name).as_dict()
        for name, text in (("x", "haze[visibility=50..1000]"), ("y", "night[lux=1..1000]"))
    }
    slope = np.linspace(0, 1, GRID * GRID).round(5).tolist()
    grid = {"along": GRID, "score": slope, "low": slope, "high": slope, "zone": [0] * GRID * GRID}
    content = {**axes, "measure": "AP50", "threshold": 0.4, "higher": True, "classes": None, "images": 60,
               "inferences": 600, "words": "", "level": "", "shares": {}, "points": [], "grid": grid,
               "line": []}  # fmt: skip
    run = Run(Path(next(iter(scored_runs()))))
    return content, judge_domain(parse_domain(yaml.safe_load(_MAPPED), "odd.yaml"), run, [], replicates=50)


def kept_map(dice: random.Random, folder: Path) -> None:
    """A map.json of another folder, drawn over the cells of a domain."""
    from stormproof.report.odd_page import odd_page
    from stormproof.results.map_file import read_map

    content, verdicts = _map_and_verdicts()
    changed = tree({**content, "grid": {**content["grid"], "score": None}}, dice)
    if isinstance(changed, dict) and isinstance(changed.get("grid"), dict) and dice.random() < 0.8:
        changed["grid"]["score"] = content["grid"]["score"]
    (folder / "map.json").write_bytes(json_bytes(changed))
    odd_page(verdicts, "again", [read_map(folder)])


_REQUESTS: dict[str, dict[str, tuple[str, ...]]] = {
    "session": {}, "progress": {}, "map": {"measure": ("AP", "AP50", "oLRP", "mIoU", "")},
    "slices": {"name": ("weather", "objects", "brightness", "")},
    "tallies": {"subject": ("0", "1"), "condition": ("clean", "fog@2")},
    "cell": {"subject": ("0",), "condition": ("clean", "fog@2"), "class": ("dog", ""),
             "error": ("", "missed"),
             "slice": ("", "objects:1", "brightness:"), "fate": ("", "lost"), "score": ("0.3", "0"),
             "first": ("0", "3"), "count": ("60",)},
    "steps": {"corruption": ("fog", "rain", "haze"), "params": ("{}", '{"on": "dog"}', '{"beta": 0.1}'),
              "top": ("clean", "fog@2")},
    "look": {"image": ("0", "3"), "condition": ("clean", "fog@2", "fog@1+snow@1"), "page": ("a",),
             "turn": ("1", "2")},
    "thumbnail": {"image": ("0", "2"), "condition": ("fog@2", "contrast@5")},
    "painting": {"subject": ("0",), "image": ("1",), "condition": ("clean", "fog@2")},
    "table": {"image": ("0",), "condition": ("clean", "fog@2")},
    "acts": {"subject": ("0",), "image": ("1",), "condition": ("clean", "fog@2"), "metric": ("AP", "mPC", ""),
             "bound": ("at_least", "at_most_loss", "at_most"), "threshold": ("0.4", "nan"), "id": ("R1",)},
}  # fmt: skip
_REQUEST_TOKENS = (
    "-",
    "1",
    "9" * 30,
    "nan",
    "1e999",
    "\0",
    "\ud800",
    "é",
    "{",
    "[",
    '"',
    ":",
    "+",
    "@",
    "<b>",
)


@lru_cache(maxsize=1)
def _desks() -> tuple[Any, ...]:
    return tuple(_desk(Path(run)) for run in scored_runs())


def _desk(folder: Path) -> Any:
    from stormproof.explore.desk import Desk
    from stormproof.explore.subject import explore_runs

    exploration = explore_runs([folder])
    exploration.make_scores()  # here, where what it raises is seen, and not in a thread
    return Desk(exploration)


def _ask(desk: Any, question: str, given: dict[str, str]) -> None:
    from stormproof.explore.app import ANSWERS, Asked
    from stormproof.explore.desk import Dropped

    with suppress(Dropped):
        assert ANSWERS[question](desk, Asked(given)).status_code == 200


def request(dice: random.Random, folder: Path) -> None:
    """What a page, or somebody in its place, asks the server of an exploration."""
    question = dice.choice([*_REQUESTS])
    given = {name: dice.choice(values) for name, values in _REQUESTS[question].items()}
    for name in dice.sample([*given], k=min(len(given), dice.choice((0, 1, 1, 2)))):
        what = dice.random()
        if what < 0.2:
            del given[name]
        elif what < 0.5:
            given[name] = str(dice.choice(HOSTILE))
        else:
            given[name] = strewn(given[name], _REQUEST_TOKENS, dice.choice((1, 2)), dice)
    _ask(dice.choice(_desks()), question, given)


def explored_folder(dice: random.Random, folder: Path) -> None:
    """A run folder with a file changed, opened by `explore` and asked the first questions of its page."""
    files = scored_runs()[dice.choice([*scored_runs()])]
    name = dice.choice([*files])
    lay({**files, name: mutate(name, files[name], dice)}, folder)
    desk = _desk(folder)
    for question in ("session", "progress", "map", "cell", "tallies", "look", "acts"):
        given = {name: values[0] for name, values in _REQUESTS[question].items()}
        quietly(lambda question=question, given=given: _ask(desk, question, given))
