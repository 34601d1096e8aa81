"""Meshes of the objects in the street; each is made once and placed many times."""
