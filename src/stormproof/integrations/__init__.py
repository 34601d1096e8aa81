"""Stormproof inside other training and evaluation loops: a training transform, `watch`, MAITE."""
