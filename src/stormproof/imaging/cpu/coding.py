"""Lossy compression: JPEG."""

from __future__ import annotations

import cv2
import numpy as np

from stormproof.core.sample import Image


def jpeg(image: Image, quality: int) -> Image:
    """Encode as baseline JPEG with 4:2:0 chroma and decode again (libjpeg-turbo)."""
    grey = image.shape[2] == 1
    source = image if grey else cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    done, code = cv2.imencode(".jpg", source, [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert done, "libjpeg encodes any 8-bit image up to 65,500 pixels a side"
    flag = cv2.IMREAD_GRAYSCALE if grey else cv2.IMREAD_COLOR_RGB
    return np.asarray(cv2.imdecode(code, flag), np.uint8).reshape(image.shape)
