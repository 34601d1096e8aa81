"""What every room may import: errors, files, specs, samples, conditions, randomness, kernels, processes."""
