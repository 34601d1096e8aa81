"""Style transfer: networks, style images, and the map from contents to styles."""
