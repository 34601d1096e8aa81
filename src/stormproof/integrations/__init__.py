"""Stormproof inside the loops of others: a transform for training, a watch on a training, MAITE."""
