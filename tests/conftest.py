"""Lets every test import the helpers that stand beside this file."""

import os

from hypothesis import settings

# No test is about time: a machine under load is no failure.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

# Nobody's own readings of models decide what is drawn here.
os.environ["MICROFICHE_READINGS"] = "/nowhere/readings.json"
