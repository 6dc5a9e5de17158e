"""Lets every test import the helpers that stand beside this file."""
