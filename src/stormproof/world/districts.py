"""Kinds of neighbourhood, and the ranges their streets draw from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class District:
    """Ranges a kind of neighbourhood draws from; lengths in metres, chances from 0 to 1."""

    lanes: tuple[int, ...]  # lanes per direction
    pavement: tuple[float, float]
    verge: float  # chance of a grass strip
    yard: float  # chance that grass reaches the buildings
    setback: tuple[float, float]
    storeys: tuple[int, int]
    frontage: tuple[float, float]
    gap: tuple[float, float]
    gap_chance: float
    roofs: tuple[int, ...]  # as in models.houses.roof
    walls: tuple[int, ...]  # styles of FACADE
    shops: float
    trees: float  # per slot along the kerb
    parked: float  # share of the kerb
    people: float
    empty: float  # chance that a plot has trees instead of a building


# One line a district, in the order of the fields.
# fmt: off
DISTRICTS = {
    "centre": District((1, 1, 2), (2.5, 5.0), 0.05, 0.0, (0.0, 0.5), (3, 6), (9, 22), (0.0, 0.3), 0.1,
        (3, 3, 1, 0), (0, 0, 1, 2), 0.8, 0.25, 0.5, 1.5, 0.03),
    "terrace": District((1,), (1.6, 2.6), 0.05, 0.3, (1.5, 3.5), (2, 3), (5, 8), (0.0, 0.2), 0.1, (0, 0, 1),
        (1, 1, 0), 0.08, 0.2, 0.75, 0.7, 0.03),
    "suburb": District((1,), (1.3, 2.0), 0.6, 1.0, (5.0, 9.0), (1, 2), (8, 13), (3.0, 8.0), 1.0, (0, 1, 2),
        (0, 1, 4, 4), 0.0, 0.45, 0.3, 0.45, 0.12),
    "avenue": District((2, 2, 3), (3.0, 6.0), 0.5, 0.1, (0.0, 2.5), (4, 7), (14, 28), (0.0, 4.0), 0.3,
        (3, 3, 2), (0, 2, 1), 0.6, 0.8, 0.45, 1.0, 0.06),
    "towers": District((2, 3), (3.0, 7.0), 0.3, 0.25, (3.0, 11.0), (7, 18), (16, 32), (3.0, 14.0), 0.8,
        (3,), (3, 3, 2), 0.35, 0.35, 0.1, 0.9, 0.10),
    "works": District((1, 2), (1.5, 2.5), 0.6, 0.5, (6.0, 14.0), (1, 2), (18, 40), (6.0, 18.0), 0.9,
        (3, 3, 0), (2, 4, 0), 0.05, 0.2, 0.3, 0.25, 0.25),
    "park": District((1, 2), (2.0, 4.0), 0.6, 1.0, (9.0, 15.0), (2, 4), (10, 18), (6.0, 20.0), 0.9, (2, 0),
        (0, 1), 0.0, 0.7, 0.3, 0.8, 0.72),
}
# fmt: on
