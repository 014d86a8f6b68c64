"""Texts to vectors, with a model that comes as a Python package and runs on the CPU."""
