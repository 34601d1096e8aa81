"""Groups: images that are not independent of each other, such as frames of one recording.

Frames of a recording show the same street in the same light, so ten of them say less than ten images from
ten places. Intervals resample whole groups (`Run.units`). A group changes nothing else: pixels, predictions
and scores are those of single images, and a dataset's fingerprint does not depend on it. That is what tells
groups from clips, whose sequence and time also decide how frames are corrupted (docs/clips.md).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import cast

from stormproof.core.errors import DatasetError, InvalidOption, counted
from stormproof.core.files import locate
from stormproof.core.text import plain
from stormproof.datasets.annotations import read_table
from stormproof.datasets.dataset import Dataset, abilities
from stormproof.datasets.image_files import require_listed

BY_NAME = "names"
_COLUMNS = ["id", "group"]
_NUMBERED = re.compile(r"(?P<prefix>.*?)(?P<number>\d+)", re.ASCII | re.DOTALL)
_SPOKEN = re.compile(r"frame|video|clip|seq|drive|cam", re.IGNORECASE)
_MEMBERS = 3  # frames from which a recording is recognised by its names
_REGULAR = 0.5  # the share of equal steps between its numbers
_MOST = 0.5  # the share of images in such recordings from which a dataset is said to have them


def with_groups(dataset: Dataset, *, groups: str | None = None) -> Dataset:
    """The dataset with groups of images that are not independent.

    `groups` is a CSV file with the columns id and group, or `names`: groups by names such as drive1_0001,
    drive1_0002. Images that the file does not list stay single images.
    """
    if groups is None:
        return dataset
    if not is_dataclass(dataset) or "groups" not in {each.name for each in fields(dataset)}:
        raise InvalidOption(f"groups={groups}: {dataset.name} has no image files, so it takes no groups.")
    if groups == BY_NAME:
        names = file_names(dataset)
        belong = guess_groups(names)
        if names and not belong:
            problem = f"names such as {names[dataset.ids[0]]!r} do not look like frames of recordings"
            raise InvalidOption(f"groups={groups}: {problem}; list their groups in a CSV file, id,group.")
    else:
        belong = drop_singletons(_read_groups(locate(groups, abilities(dataset).root), dataset))
    return cast(Dataset, replace(dataset, groups=belong))


def _read_groups(path: Path, dataset: Dataset) -> dict[str, str]:
    """The group of each image that a CSV file lists, by image id."""
    groups = {}
    for line, row in read_table(path, _COLUMNS):
        if len(row) != len(_COLUMNS) or not all(row):
            problem = f"{','.join(row)!r:.80} must be an image id and its group."
            raise DatasetError(path, problem, f"line {line}")
        groups[row[0]] = row[1]
    require_listed(dataset, groups, path)
    return groups


def drop_singletons(groups: Mapping[str, str]) -> dict[str, str]:
    """Groups of two images or more: an image that is alone in its group is an image like any other.

    >>> drop_singletons({"a1": "a", "a2": "a", "b1": "b"})
    {'a1': 'a', 'a2': 'a'}
    """
    sizes = Counter(groups.values())
    return {name: group for name, group in groups.items() if sizes[group] > 1}


def before_underscore(names: Iterable[str]) -> dict[str, str]:
    """Groups by what stands before the last underscore.

    >>> before_underscore(["0001TP_008550", "0001TP_008580", "Seq05VD_f00000"])
    {'0001TP_008550': '0001TP', '0001TP_008580': '0001TP'}
    """
    return drop_singletons({name: name.rpartition("_")[0] or name for name in names})


def close_frames(places: Mapping[str, tuple[str, int]], *, gap: int) -> dict[str, str]:
    """Groups of frames that follow each other within `gap` numbers; `places` are recordings and numbers.

    >>> close_frames({"a": ("x", 1), "b": ("x", 5), "c": ("x", 90), "d": ("y", 5)}, gap=30)
    {'a': 'x from 1', 'b': 'x from 1'}
    """
    groups: dict[str, str] = {}
    group, last = "", ("", 0)
    for place, name in sorted((place, name) for name, place in places.items()):
        if place[0] != last[0] or place[1] - last[1] > gap:
            group = f"{place[0]} from {place[1]}"
        groups[name], last = group, place
    return drop_singletons(groups)


def file_names(dataset: Dataset) -> dict[str, str]:
    """The folder and name of each image's file by the image's id; the id itself if there is no file."""
    source, names = abilities(dataset).image_source, dict[str, str]()
    for index, name in enumerate(dataset.ids):
        path = None if (file := source(index)) is None else file.path
        names[name] = name if path is None else f"{path.parent.name}/{path.stem}"
    return names


def guess_groups(names: Mapping[str, str]) -> dict[str, str]:
    """Groups, by image id, of file names that look like frames of recordings.

    Frames have the same beginning, then numbers in regular steps. Numbers alone say nothing, since most
    datasets number their images. So there must be several beginnings, or one with a word such as "frame".

    >>> guess_groups({"1": "a_01", "2": "a_02", "3": "a_03", "4": "b_10", "5": "b_12", "6": "b_14"})["5"]
    'b_'
    >>> guess_groups({"1": "000001", "2": "000002", "3": "000003"})
    {}
    """
    numbers: dict[str, dict[str, int]] = {}
    for identity, name in names.items():
        if match := _NUMBERED.fullmatch(name):
            numbers.setdefault(match["prefix"], {})[identity] = int(match["number"])
    recordings = {prefix: held for prefix, held in numbers.items() if _is_regular([*held.values()])}
    if len(recordings) < 2 and not any(map(_SPOKEN.search, recordings)):
        return {}
    groups = {identity: prefix for prefix, held in recordings.items() for identity in held}
    return groups if len(groups) >= _MOST * len(names) else {}


def frames_warning(dataset: Dataset) -> str | None:
    """A warning if images that count as independent look like frames of recordings."""
    names = file_names(dataset)
    groups = guess_groups(names)
    if not groups:
        return None
    recordings, first = len({*groups.values()}), names[next(iter(groups))]
    return (
        f"The names of {len(groups)} of {len(names)} images look like frames of "
        f"{counted(recordings, 'recording')} ({plain(first)} …). Frames of one recording are alike, so "
        "intervals that take them as independent are too narrow. If they are frames, add ',groups=names' to "
        "the dataset (--data): intervals then count recordings, and pixels and scores stay as they are."
    )


def _is_regular(numbers: Sequence[int]) -> bool:
    if len(numbers) < _MEMBERS:
        return False
    steps = Counter(b - a for a, b in pairwise(sorted(numbers)))
    return steps.most_common(1)[0][1] >= _REGULAR * steps.total()
