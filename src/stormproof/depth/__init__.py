"""Depth estimation: from stereo pairs, depth networks, or incomplete depth maps."""
