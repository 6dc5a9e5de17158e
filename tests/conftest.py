"""Lets every test import the helpers that stand beside this file."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from microfiche.conversation import Conversation, Record
from microfiche.ladder import shelves
from microfiche.pages import kept

# No test is about time: a machine under load is no failure.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

# Nobody's own readings of models decide what is drawn here.
os.environ["MICROFICHE_READINGS"] = "/nowhere/readings.json"


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    """No test is given what another drew, nor leaves what it drew under other circumstances."""
    yield
    kept.pages.clear()
    shelves.forget()


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Conversation]:
    """A conversation of a record of its own."""
    with Record.open(tmp_path / "work.mf") as record:
        yield record.conversation("triage")
