"""The matrix of paths, which scenarios/paths.py runs."""
