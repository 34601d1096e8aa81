"""odd.yaml: an operational design domain, read and checked before anything is judged.

    odd: Shuttle in town
    dimensions:
      visibility: {unit: m, cells: {fog: [100, 300], clear: clear}}
      illuminance: {unit: lux, cells: {night: [5, 40], day: day}}
      distance: {unit: m, cells: {near: [0, 15], far: [15, 30]}}
    requirements:
      - {id: R1, found: person, at_least: 0.6, where: {distance: near}}
      - {id: R2, metric: AP50, at_least: 0.3}
    outside:
      - snow
      - {visibility: fog, illuminance: night}

Quantities have a value where their corruption is absent: no rain is 0 mm/h, without fog the visibility is
`clear`, without darkness it is `day`. That value may be the end of a range, as in [300, clear], or a cell of
its own. What the ranges do not cover, and combinations listed under `outside`, are not part of the domain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

from stormproof.core.errors import InvalidOption, StormproofError, UnknownName
from stormproof.core.files import read_yaml
from stormproof.corruptions import find
from stormproof.datasets.annotations import is_number
from stormproof.metrics.metric import measures
from stormproof.results.detection_rate import MIN_SCORE
from stormproof.results.domain import (
    ATTRIBUTES,
    QUANTITIES,
    SEVERITY,
    Dimension,
    DimensionPart,
    Domain,
    DomainCell,
    DomainRequirement,
    VariedQuantity,
    compose_quantities,
)
from stormproof.results.requirements import check_ids, check_keys, check_plan, read_id, words

MOST_CELLS = 2000  # of a domain
_TOP = ("odd", "dimensions", "requirements", "outside", "planned_images")
_REQUIREMENT = ("id", "found", "metric", "at_least", "at_most", "where", "min_score")
_KEYS = ("unit", "range", "cells", "corruption", "corruptions", "parameter", "with", "worse", "tag", "values")


def read_domain(path: Path | str) -> Domain:
    """The domain of a file; the first mistake is named with its place."""
    content = read_yaml(Path(path), error=InvalidOption)
    return parse_domain(content, str(path))


def parse_domain(content: Any, called: str) -> Domain:
    """A domain from what a YAML file holds."""
    if not isinstance(content, Mapping):
        raise InvalidOption(f"{called} must hold 'odd', 'dimensions' and 'requirements'.")
    check_keys(content, _TOP, called)
    name = content.get("odd")
    if not isinstance(name, str) or not name.strip():
        raise InvalidOption(f"{called} has no name; add one, such as odd: Shuttle in town.")
    dimensions = content.get("dimensions")
    if not isinstance(dimensions, Mapping) or not dimensions:
        raise InvalidOption(f"{called}: 'dimensions' is empty, so the domain has no cells.")
    made = tuple(_dimension(str(key), value, f"{called}, {key}") for key, value in dimensions.items())
    _check_apart(made, called)
    rows = content.get("requirements")
    if not isinstance(rows, list) or not rows:
        raise InvalidOption(f"{called}: 'requirements' is empty, so nothing would be judged.")
    known = {d.name: d for d in made}
    requirements = tuple(
        _requirement(row, known, f"{called}, requirement {k}") for k, row in enumerate(rows, 1)
    )
    check_ids([r.id for r in requirements], called)
    excluded, outside = _outside(content.get("outside"), known, called)
    planned = check_plan(content.get("planned_images"), called)
    domain = Domain(name.strip(), made, requirements, excluded, outside, planned)
    total = math.prod(len(d.parts) for d in made)
    if total > MOST_CELLS:
        raise InvalidOption(
            f"{called}: {total:,} cells; at most {MOST_CELLS:,} can be judged. Use fewer dimensions or cells."
        )
    for requirement in requirements:
        if not domain.cells(requirement):
            raise InvalidOption(f"{called}, {requirement.id}: every cell that it is for lies outside.")
    return domain


def _dimension(name: str, row: Any, where: str) -> Dimension:
    if not isinstance(row, Mapping):
        raise InvalidOption(f"{where} is {row!r:.60}; write {{unit: m, range: [100, 1000]}}.")
    check_keys(row, _KEYS, where)
    if "tag" in row or "values" in row:
        return _read_tags(name, row, where)
    corruptions = row.get("corruptions", row.get("corruption"))
    if corruptions is not None:
        return _of_corruptions(name, row, corruptions, where)
    if name in ATTRIBUTES:
        source, unit = ATTRIBUTES[name]
        _check_unit(row, unit, where)
        return Dimension(name, "attribute", unit, _parts(row, unit, "", None, where), source=source)
    if name not in QUANTITIES:
        known = (*QUANTITIES, *ATTRIBUTES)
        hint = (
            f"Known: {words(known)}. For any other, name what varies it, corruption: NAME with parameter: "
            "NAME, or tag: NAME of the data."
        )
        raise InvalidOption(f"{where}: {UnknownName('dimension', name, known, hint)}")
    quantity = QUANTITIES[name]
    _check_unit(row, quantity.unit, where)
    parts = _parts(row, quantity.unit, quantity.word, quantity.absent, where)
    made = Dimension(name, "quantity", quantity.unit, parts, (quantity,))
    _check_values(made, where)
    return made


def _of_corruptions(name: str, row: Mapping[str, Any], given: Any, where: str) -> Dimension:
    """A dimension that the user's file defines: corruptions with a severity, or one with a parameter."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names or not all(isinstance(each, str) for each in names):
        raise InvalidOption(f"{where}: corruptions is {given!r:.60}; write [motion_blur, defocus_blur].")
    for each in names:
        try:
            find(each)
        except StormproofError as error:
            raise InvalidOption(f"{where}: {error}") from None
    parameter = row.get("parameter", SEVERITY)
    fixed = row.get("with", {})
    if not isinstance(parameter, str) or not isinstance(fixed, Mapping):
        raise InvalidOption(
            f"{where}: parameter is a name, and 'with' holds others, as in with: {{lux: 20000}}."
        )
    if parameter == SEVERITY:
        _check_unit(row, SEVERITY, where)
        unit, worse, absent = SEVERITY, "high", 0.0
    else:
        if len(names) > 1:
            raise InvalidOption(f"{where}: a parameter is that of one corruption, not of {words(names)}.")
        _check_unit(row, None, where)
        unit, worse = str(row["unit"]), str(row.get("worse"))
        if worse not in ("low", "high"):
            raise InvalidOption(f"{where}: say which end of {parameter} is worse, worse: low or worse: high.")
        absent = math.inf if worse == "low" else 0.0
    quantities = tuple(
        VariedQuantity(each, parameter, unit, worse, absent, fixed=tuple(fixed.items())) for each in names
    )
    made = Dimension(name, "quantity", unit, _parts(row, unit, "", absent, where), quantities)
    _check_values(made, where)
    return made


def _check_unit(row: Mapping[str, Any], unit: str | None, where: str) -> None:
    given = row.get("unit")
    if given is None:
        raise InvalidOption(f"{where} has no unit; add unit: {unit or '…, that of the parameter'}.")
    if unit is not None and given != unit:
        raise InvalidOption(f"{where}: the unit is {given!r}; ranges of it are in {unit}: convert them.")


def _read_tags(name: str, row: Mapping[str, Any], where: str) -> Dimension:
    """A dimension of tags: values of an attribute of images, a cell each, or named groups of them."""
    tag, values = row.get("tag", name), row.get("values")
    extra = [key for key in ("unit", "range", "cells", "corruption", "corruptions") if key in row]
    if extra:
        raise InvalidOption(f"{where}: a tag has values, not {words(extra)}.")
    if isinstance(values, list):
        values = {str(value): [value] for value in values}
    if not isinstance(tag, str) or not isinstance(values, Mapping) or not values:
        raise InvalidOption(
            f"{where}: list the tag's values, as in {{tag: weather, values: [clear, rainy]}}."
        )
    parts = []
    for key, group in values.items():
        members = group if isinstance(group, list) else [group]
        if not members:
            raise InvalidOption(f"{where}: {key} has no values.")
        parts.append(DimensionPart(str(key), values=tuple(map(str, members))))
    for one, two in combinations(parts, 2):
        both = sorted({*one.values} & {*two.values})
        if both:
            raise InvalidOption(f"{where}: {one.name} and {two.name} overlap: both have {words(both)}.")
    return Dimension(name, "tag", "", tuple(parts), source=tag)


def _parts(
    row: Mapping[str, Any], unit: str, word: str, absent: float | None, where: str
) -> tuple[DimensionPart, ...]:
    """The cells of a range, apart from each other."""
    if ("range" in row) == ("cells" in row):
        raise InvalidOption(f"{where}: give either range: [low, high] or cells: {{name: [low, high], …}}.")
    cells = row["cells"] if "cells" in row else [row["range"]]
    if isinstance(cells, Mapping):
        named = [(str(key), span) for key, span in cells.items()]
    elif isinstance(cells, list):
        named = [("", span) for span in cells]
    else:
        raise InvalidOption(f"{where}: cells is {cells!r:.60}; write {{near: [0, 15], far: [15, 30]}}.")
    if not named:
        raise InvalidOption(f"{where}: cells is empty.")
    made = []
    for name, span in named:
        if absent is not None and (span == absent or (word and span == word)):
            made.append(DimensionPart(name or word or f"{absent:g} {unit}", absent, absent))
            continue
        low, high = _ends(span, word, f"{where}{f', {name}' if name else ''}")
        shown = [word if math.isinf(end) else f"{end:g}" for end in (low, high)]
        made.append(DimensionPart(name or f"{shown[0]}–{shown[1]} {unit}", low, high))
    for one, two in pairwise(sorted(made, key=lambda part: part.low)):
        if two.low < one.high:
            raise InvalidOption(
                f"{where}: {one.name} [{one.low:g}, {one.high:g}] and {two.name} [{two.low:g}, {two.high:g}] "
                f"overlap; cells may share an end, as in [0, 15] and [15, 30]."
            )
    return tuple(made)


def _ends(span: Any, word: str, where: str) -> tuple[float, float]:
    """Both ends of a range; the higher may be the word for a corruption's absence."""
    if not isinstance(span, list) or len(span) != 2:
        raise InvalidOption(f"{where} is {span!r:.60}; a range is [low, high].")
    ends = [math.inf if word and end == word else end for end in span]
    for end in ends:
        if not (is_number(end) or end == math.inf):
            fix = f", or the word {word}" if word else ""
            raise InvalidOption(f"{where}: {end!r:.60} is no end of a range; give a number{fix}.")
    low, high = map(float, ends)
    if low >= high:
        kind = "empty" if low == high else "upside down"
        raise InvalidOption(f"{where}: the range [{low:g}, {high:g}] is {kind}; give the lower end first.")
    return low, high


def _check_values(dimension: Dimension, where: str) -> None:
    """Refuse a range whose ends the corruption cannot have."""
    for part in dimension.parts:
        for quantity in dimension.quantities:
            if quantity.highest < part.high < quantity.absent:
                raise InvalidOption(
                    f"{where}, {part.name}: {quantity.corruption} is a camera exposed for "
                    f"{quantity.highest:g} {quantity.unit}, so more than that is not milder; end at "
                    f"{quantity.highest:g} or at {quantity.word}."
                )
            try:
                value = dimension.hardest(part)
                condition = compose_quantities([(quantity, value)])
                for single in condition.parts:
                    find(str(single.corruption)).parameters(single)
            except StormproofError as error:
                raise InvalidOption(f"{where}, {part.name}: {error}") from None


def _check_apart(dimensions: Sequence[Dimension], called: str) -> None:
    """Refuse two dimensions that vary the same thing."""
    taken: dict[tuple[str, str], str] = {}
    for dimension in dimensions:
        sources = [(q.corruption, q.parameter) for q in dimension.quantities] or [
            (dimension.kind, dimension.source)
        ]
        for source in sources:
            if source in taken:
                raise InvalidOption(
                    f"{called}: {taken[source]} and {dimension.name} are both {' '.join(source)}; keep one."
                )
            taken[source] = dimension.name


def _requirement(row: Any, known: Mapping[str, Dimension], where: str) -> DomainRequirement:
    if not isinstance(row, Mapping):
        raise InvalidOption(f"{where} is {row!r:.60}; write {{id: R1, found: person, at_least: 0.95}}.")
    check_keys(row, _REQUIREMENT, where)
    identity = read_id(row, where)
    where = f"{where} ({identity})"
    found, metric = row.get("found"), row.get("metric")
    if (found is None) == (metric is None) or not isinstance(found if metric is None else metric, str):
        raise InvalidOption(f"{where}: give either found: CLASS or metric: NAME, such as found: person.")
    if metric is not None and metric not in measures():
        raise InvalidOption(
            f"{where}: {UnknownName('metric', metric, measures(), 'See: stormproof explain.')}"
        )
    bound, threshold = _bound(row, metric, where)
    min_score = row.get("min_score", MIN_SCORE)
    if isinstance(min_score, bool) or not isinstance(min_score, int | float) or not 0 <= min_score < 1:
        raise InvalidOption(f"{where}: min_score is {min_score!r:.60}; give a score from 0 to below 1.")
    chosen = _choose(row.get("where", {}), known, where)
    if metric is not None:
        cut = [name for name, _ in chosen if known[name].kind == "attribute"]
        if cut:
            raise InvalidOption(
                f"{where}: false positives have no {cut[0]}, so {metric} has none either; use found: CLASS."
            )
    return DomainRequirement(identity, metric or "found", found, bound, threshold, chosen, float(min_score))


def _bound(row: Mapping[str, Any], metric: str | None, where: str) -> tuple[str, float]:
    given = [name for name in ("at_least", "at_most") if name in row]
    lower = metric is not None and not measures()[metric].higher
    right = "at_most" if lower else "at_least"
    if given != [right]:
        raise InvalidOption(f"{where}: give one bound, {right}: …, not {words(given) or 'none'}.")
    value = row[right]
    if not is_number(value):
        raise InvalidOption(f"{where}: {right} is {value!r:.60}, not a number.")
    if (metric is None or measures()[metric].fraction) and not 0 < value < 1:
        fix = f"; write {value / 100:g}" if 1 < value < 100 else ""
        raise InvalidOption(f"{where}: {right} {value:g} is impossible or trivial; use a fraction{fix}.")
    return right, float(value)


def _choose(
    given: Any, known: Mapping[str, Dimension], where: str
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Cells of dimensions by name: {distance: near, visibility: [fog, clear]}."""
    if not isinstance(given, Mapping):
        raise InvalidOption(f"{where}: where is {given!r:.60}; write {{distance: near}}.")
    made = []
    for name, parts in given.items():
        _require_known("dimension", name, [*known], where)
        asked = parts if isinstance(parts, list) else [parts]
        for part in asked:
            _require_known(f"cell of {name}", part, [each.name for each in known[name].parts], where)
        made.append((str(name), tuple(map(str, asked))))
    return tuple(made)


def _require_known(kind: str, name: Any, known: Sequence[str], where: str) -> None:
    if name not in known:
        raise InvalidOption(f"{where}: {UnknownName(kind, str(name), known, f'Has: {words(known)}.')}")


def _outside(
    given: Any, known: Mapping[str, Dimension], called: str
) -> tuple[tuple[DomainCell, ...], tuple[str, ...]]:
    """Combinations of cells that are not part of the domain, and what else is not, in words."""
    excluded: list[DomainCell] = []
    others: list[str] = []
    if given is not None and not isinstance(given, list):
        raise InvalidOption(f"{called}: outside is a list, of words or combinations of cells.")
    for k, row in enumerate(given or (), 1):
        if isinstance(row, str):
            others.append(row)
            continue
        chosen = _choose(row, known, f"{called}, outside {k}")
        excluded += product(*([(name, part) for part in parts] for name, parts in chosen))
    return tuple(excluded), tuple(others)
