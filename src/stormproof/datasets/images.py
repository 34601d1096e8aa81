"""A plain folder of images, with no truth: enough to corrupt, to predict and to compare predictions."""

from __future__ import annotations

from stormproof.datasets.filedataset import FileDataset
from stormproof.datasets.files import distinct, folder, list_files, locate
from stormproof.errors import DatasetError


def open_images(main: str) -> FileDataset:
    """Every image below a folder, or one file; its id is its path in the folder, without the suffix."""
    place = locate(main)
    root = place.parent if place.is_file() else folder(place, "images")
    found = [place] if place.is_file() else list_files(root)
    if not found:
        raise DatasetError(root, "holds no images; known are the usual suffixes, .jpg, .png and so on.")
    ids = distinct((path.relative_to(root).with_suffix("").as_posix() for path in found), root, "image id")
    return FileDataset(
        name=place.stem if place.is_file() else root.name, root=root, ids=ids, images=tuple(found)
    )
