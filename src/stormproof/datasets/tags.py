"""Tags of images: what a dataset, a CSV file or ASAM OpenLABEL files say about each image, in words.

OpenLABEL 1.0.0 tags one data file per JSON file: `metadata.tagged_file` names the image, and `tags` holds the
types of an ontology, such as WeatherRain, some with values:

    {"openlabel": {"metadata": {"schema_version": "1.0.0", "tagged_file": "000001.png"},
                   "tags": {"0": {"type": "WeatherRain", "tag_data": {
                       "num": [{"name": "weatherRainValue", "type": "value", "val": 4}]}}}}}

Such an image has the tags 'WeatherRain' and 'weatherRainValue=4'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from stormproof.core.errors import DatasetError, counted
from stormproof.core.files import read_json
from stormproof.datasets.attributes import read_attribute
from stormproof.datasets.dataset import Dataset
from stormproof.datasets.image_files import names_of

ONTOLOGY = "https://openlabel.asam.net/V1-0-0/ontologies/openlabel_ontology_scenario_tags.ttl"
SCHEMA = "1.0.0"
_LARGEST = 1 << 26  # bytes of a file


def read_tags(dataset: Dataset, source: str, indices: Sequence[int]) -> list[frozenset[str]]:
    """The tags of some images: an attribute of the dataset, 'FILE.csv:COLUMN', an OpenLABEL file, or a folder
    of them. An image without a tag has none."""
    path = Path(source)
    if path.suffix != ".json" and not path.is_dir():
        values = read_attribute(dataset, source, indices).values
        return [frozenset(() if value is None else (value,)) for value in values]
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    if not files:
        raise DatasetError(path, "holds no .json file, so no OpenLABEL tags.")
    known: dict[str, frozenset[str]] = {}
    for file in files:
        named, tags = read_openlabel(file)
        for name in {named, PurePosixPath(named).stem}:
            known[name] = known.get(name, frozenset()) | tags
    names = [names_of(dataset, index) for index in indices]
    made = [next((known[name] for name in each if name in known), frozenset[str]()) for each in names]
    if not any(made):
        none = f"tags none of the {counted(len(indices), 'image')}"
        raise DatasetError(path, f"{none}: it names {named!r}, and images are called {names[0][0]!r}.")
    return made


def read_openlabel(path: Path) -> tuple[str, frozenset[str]]:
    """The name of the tagged file and its tags."""
    content = read_json(path, at_most=_LARGEST)
    body = content.get("openlabel") if isinstance(content, dict) else None
    if not isinstance(body, dict):
        raise DatasetError(path, "is not OpenLABEL: it has no key 'openlabel'.")
    meta, tags = body.get("metadata"), body.get("tags")
    name = meta.get("tagged_file") if isinstance(meta, dict) else None
    if not isinstance(name, str) or not name:
        raise DatasetError(
            path, "does not say what it tags; add metadata.tagged_file, the image's file name."
        )
    if not isinstance(tags, dict):
        raise DatasetError(path, "has no tags; add openlabel.tags, an object of tags by number.")
    return PurePosixPath(name).name, frozenset(
        text for key, tag in tags.items() for text in _texts(path, key, tag)
    )


def _texts(path: Path, key: str, tag: Any) -> Iterator[str]:
    if not isinstance(tag, dict) or not isinstance(tag.get("type"), str):
        raise DatasetError(path, "has a tag without a type.", f"tag {key}")
    yield tag["type"]
    data = tag.get("tag_data")
    for rows in data.values() if isinstance(data, dict) else ():
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and isinstance(row.get("val"), str | int | float | bool):
                yield f"{row.get('name', tag['type'])}={row['val']}"


def write_openlabel(tags: Sequence[Mapping[str, Any]], tagged: str) -> dict[str, Any]:
    """An OpenLABEL document about one file; tags with a type of the ontology refer to it."""
    return {
        "openlabel": {
            "metadata": {"schema_version": SCHEMA, "tagged_file": tagged},
            "ontologies": {"0": ONTOLOGY},
            "tags": {str(k): dict(tag) for k, tag in enumerate(tags)},
        }
    }
