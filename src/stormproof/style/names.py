"""What a style corruption may be told; plain names, so that declaring it loads no network."""

from stormproof.corruptions.groups import FEATURE, PIXEL

BUILT_IN = "built-in"
SPACES = (FEATURE, PIXEL)
EPSILON = 1e-5  # added to variances, as in the original
