"""A folder of images without truth: enough to corrupt, to predict and to compare predictions."""

from __future__ import annotations

from pathlib import Path

from stormproof.core.errors import DatasetError
from stormproof.core.files import folder, locate
from stormproof.core.imagefile import IMAGE_SUFFIXES
from stormproof.core.sample import Sample
from stormproof.core.spec import Spec
from stormproof.datasets.annotations import list_images, unique_names
from stormproof.datasets.dataset import READERS, FileDataset
from stormproof.datasets.writing import WRITERS, Destination, Record, Writer, drops_maps, drops_objects


@READERS.declare("images")
def open_images(main: str) -> FileDataset:
    """Every image below a folder, or one image; ids are paths below the folder, without suffix."""
    place = locate(main)
    root = place.parent if place.is_file() else folder(place, "images")
    paths = [place] if place.is_file() else list_images(root)
    if not paths:
        raise DatasetError(root, f"contains no images ({', '.join(sorted(IMAGE_SUFFIXES))}).")
    names = (path.relative_to(root).with_suffix("").as_posix() for path in paths)
    ids = unique_names(names, root, "image id")
    return FileDataset(
        name=place.stem if place.is_file() else root.name, root=root, ids=ids, images=tuple(paths)
    )


def _write(destination: Destination, name: str, sample: Sample) -> tuple[Path, Record]:
    return destination.write_image("images", name, sample.image), {}


def _spec(destination: Destination) -> Spec:
    return Spec("images", f"{destination.root}/images")


def _drops(destination: Destination) -> str:
    return " and ".join(filter(None, (drops_objects(destination), drops_maps(destination))))


WRITERS.add("images", Writer(_write, _spec, lambda destination: "", _drops), module=__name__)
