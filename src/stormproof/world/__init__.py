"""The built-in street: rendered scenes whose truth is exact, because it comes from the geometry."""
