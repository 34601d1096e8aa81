"""Where depth, disparity and cameras come from."""
