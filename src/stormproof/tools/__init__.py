"""Made from images and datasets: corrupted copies, training sets, gallery, quality tables, drawings."""
