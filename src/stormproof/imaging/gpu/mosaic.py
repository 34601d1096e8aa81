"""The colour filter array: one colour per sensor site, and interpolation of the other two.

The filter is RGGB: even rows are red, green, red …, odd rows green, blue, green …
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from stormproof.imaging.gpu.batch import Batch, as_batch
from stormproof.imaging.plans import DEMOSAIC_REACH


def mosaic(image: Batch) -> Batch:
    """The colour that each site's filter passes, as H×W; a grey image is its own raw."""
    data = image.data
    if image.shape[2] == 1:
        return Batch(data[..., 0].clone())
    return Batch(data.gather(3, _colours(data)[..., None].expand(len(data), -1, -1, -1))[..., 0])


def _colours(data: Tensor) -> Tensor:
    """The channel of each site; 1 × H × W."""
    y, x = (torch.arange(side, device=data.device) % 2 for side in data.shape[1:3])
    return (y[:, None] + x)[None]


def demosaic(raw: Batch, image: Batch) -> Batch:
    """Develop again the raw of an image, some sites of which now read other values.

    Same result as `imaging.cpu.mosaic.demosaic`: bilinear where a faulty site lies in the 5×5 around a pixel,
    the image elsewhere.
    """
    sites, photograph = as_batch(raw).data.to(torch.int32), as_batch(image)
    faults = (sites != mosaic(photograph).data).to(torch.float32)
    near = max_pool2d(faults[:, None], 2 * DEMOSAIC_REACH + 1, 1, DEMOSAIC_REACH)[:, 0, ..., None] > 0
    padded = _mirrored(sites)
    here, left, right = padded[:, 1:-1, 1:-1], padded[:, 1:-1, :-2], padded[:, 1:-1, 2:]
    up, down = padded[:, :-2, 1:-1], padded[:, 2:, 1:-1]
    corners = (padded[:, :-2, :-2] + padded[:, :-2, 2:]) + (padded[:, 2:, :-2] + padded[:, 2:, 2:])
    cross = (left + right + up + down + 2) >> 2
    diagonal = (corners + 2) >> 2
    level, upright = (left + right + 1) >> 1, (up + down + 1) >> 1
    colour = _colours(sites)
    odd_row = (torch.arange(sites.shape[1], device=sites.device) % 2).bool()[None, :, None]
    green = torch.where(colour == 1, here, cross)
    # Red sites are in even rows: there red lies beside a green site, in odd rows above and below it.
    beside_red, beside_blue = torch.where(odd_row, upright, level), torch.where(odd_row, level, upright)
    red = torch.where(colour == 0, here, torch.where(colour == 1, beside_red, diagonal))
    blue = torch.where(colour == 2, here, torch.where(colour == 1, beside_blue, diagonal))
    filled = torch.stack((red, green, blue), 3).to(torch.uint8)
    return Batch(torch.where(near, filled, photograph.data))


def _mirrored(sites: Tensor) -> Tensor:
    """Add one mirrored site on every side; mirroring about a site keeps the colour pattern."""
    for axis in (1, 2):
        last = sites.shape[axis] - 1
        index = torch.arange(-1, last + 2, device=sites.device).abs()
        sites = sites.index_select(axis, torch.where(index > last, last - 1, index))
    return sites
