"""The things that stand and move in the street, as meshes; each is made once and placed many times."""
