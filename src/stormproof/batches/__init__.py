"""Corrupting batches during training."""
