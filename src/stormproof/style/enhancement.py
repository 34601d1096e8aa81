"""The enhancement `style`: every image is repainted in one of the built-in styles before the model sees it.

It is registered in the entry point group `stormproof.enhancements`.
"""

from __future__ import annotations

from stormproof.core.randomness import Draw, digest
from stormproof.core.sample import Image, as_rgb
from stormproof.style.networks import open_network
from stormproof.style.painting import stylize
from stormproof.style.sources import list_styles
from stormproof.style.stylemap import draw_styles


class StyleEnhancement:
    """Repaints an image; its own content chooses the style, so that equal images are repainted alike."""

    @property
    def fingerprint(self) -> str:
        return open_network().fingerprint

    def __call__(self, image: Image) -> Image:
        image = as_rgb(image)
        names = list_styles()
        chosen = draw_styles(Draw.keyed(0, digest(image), "enhance"), tuple(names))[0]
        return stylize(image, names[chosen], alpha=1.0)


style = StyleEnhancement()
