"""Whole archives of sessions as pages: the function over rows, and the run over files that uses it."""
