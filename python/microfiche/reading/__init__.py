"""How well pages are read: texts that nobody can guess, scores, readers, and the probe of a model."""
