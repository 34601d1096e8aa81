"""Shared by every package: errors, files, specs, samples, conditions, randomness, kernels, processes."""
