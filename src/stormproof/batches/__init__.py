"""Batches of images on a device, for models and for training."""
