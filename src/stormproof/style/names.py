"""Names and constants of the style corruption, kept apart so that declaring it loads no network."""

from stormproof.corruptions.suites import FEATURE, PIXEL

BUILT_IN = "built-in"
DRAWN = "drawn"  # as a style map: each image's style is drawn at random
SPACES = (FEATURE, PIXEL)
EPSILON = 1e-5  # added to variances, as in the original
