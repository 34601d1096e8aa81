"""What a style corruption may be told; plain names, so that declaring it loads no network."""

BUILT_IN = "built-in"
FEATURE, PIXEL = "feature", "pixel"
SPACES = (FEATURE, PIXEL)
EPSILON = 1e-5  # added to variances, as in the original
