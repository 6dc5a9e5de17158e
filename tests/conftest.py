"""Lets every test import the helpers that stand beside this file."""

import os

# Nobody's own readings of models decide what is drawn here.
os.environ["MICROFICHE_READINGS"] = "/nowhere/readings.json"
