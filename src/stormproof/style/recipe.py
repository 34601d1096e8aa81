"""Style transfer as a corruption (theodoridis2022): texture and colour go, shape stays."""

from __future__ import annotations

from stormproof.core.randomness import Draw
from stormproof.core.sample import Image
from stormproof.corruptions.corruption import constant, corruption, free
from stormproof.corruptions.suites import FEATURE, PIXEL

# Values of its parameters.
BUILT_IN = "built-in"
DRAWN = "drawn"  # the style map: each image's style is drawn at random


@corruption(
    family="style",
    cite="theodoridis2022",
    owner="frame",
    version=4,
    one_image_only="it needs a network of its own",
    alpha=free(low=0, high=1, unit="weight"),
    space=constant(FEATURE, choices=(FEATURE, PIXEL)),
    styles=constant(BUILT_IN),
    network=constant(BUILT_IN),
    stylemap=constant(DRAWN),
)
def style(
    image: Image, draw: Draw, *, alpha: float, space: str, styles: str, network: str, stylemap: str
) -> Image:
    """The image repainted in another's style, from not at all (α = 0) to fully (α = 1).

    AdaIN moves every feature channel to the style's mean and deviation (huang2017). In feature space α
    blends features, and the built-in network adds the content's detail, which fades to 6 %; in pixel space it
    blends the fully painted image over the original. With `on=objects` or `on=background` only those pixels
    are repainted. `styles` is a folder of images, `network` a style network, `stylemap` a JSON file that says
    which style an image gets; else it is drawn.
    """
    from stormproof.style.painting import stylize  # here: other corruptions need no network
    from stormproof.style.sources import styles_for

    _, chosen = styles_for(draw, styles, stylemap)[0]  # the same for all α, spaces and parts of an image
    return stylize(image, chosen, alpha=alpha, space=space, network=network)
