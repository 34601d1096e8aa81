"""Decoders of networks for further tasks, a file for each task; they are registered in `models.decoders`."""
