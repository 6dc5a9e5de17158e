"""Golden records: contexts of every released version prove, to the pixel where this version's font is theirs."""

from __future__ import annotations

import shutil
from pathlib import Path

import microfiche as mf
import pytest
from microfiche.auditing import FORMS

GOLDEN = Path(__file__).parent / "data" / "golden"

HEADS = {
    "0.1": "159 f5388ee73a5671a1f4c868990a9ed3f7258276cb0cc9e11ec943705ed7764e15",
}
"""The head of each, so that none is made again by mistake. That of the version in the making is made anew by
``tests/data/make_golden.py`` whenever what it draws or says changes on purpose."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place of its own for the files: opening one leaves others beside it."""
    return Path(shutil.copytree(GOLDEN, tmp_path_factory.mktemp("golden") / "golden"))


@pytest.mark.parametrize("version", HEADS)
def test_a_golden_record_is_what_it_was(folder: Path, version: str) -> None:
    with mf.Record.open(folder / f"{version}.mf", read_only=True) as record:
        verdict = record.verify(head=HEADS[version], derived=True)
        assert verdict, verdict.reason
        kinds = {entry.kind for entry in record.entries()}
        assert {"message", "compaction", "undo", "trim", "pin", "report", "move", "label", "failure", "claim"} <= kinds


@pytest.mark.parametrize("version", HEADS)
def test_every_context_of_a_golden_record_proves(folder: Path, version: str) -> None:
    forms, calls, pages = set(), 0, 0
    with mf.Record.open(folder / f"{version}.mf", read_only=True) as record:
        for standing in record.conversations():
            audit = mf.audit(record.conversation(standing.name))
            for entry in record.entries(conversation=standing.name):
                if "asked" in entry.payload:
                    seen = audit.context_at(entry)
                    assert seen.proven, f"entry {entry.id}"
                    assert seen.redrawn, f"entry {entry.id}: the font or the grammar of pages draws otherwise"
                    forms |= {each.form for each in audit.not_considered(entry)}
                    calls, pages = calls + 1, pages + len(seen.pages)
    assert calls > 30 and pages > 50
    assert forms >= FORMS.keys() - {"shortened", "elsewhere"}


@pytest.mark.parametrize("version", HEADS)
def test_one_reading_tells_what_each_call_asked_alone_is_told(folder: Path, version: str) -> None:
    """What events left, folded over a path, and the proofs, are those of one call at a time."""
    with mf.Record.open(folder / f"{version}.mf", read_only=True) as record:
        for standing in record.conversations():
            chat = record.conversation(standing.name)
            audit = mf.audit(chat)
            calls = [each for each in record.entries(conversation=standing.name) if "asked" in each.payload]
            whole = audit.whole([each.id for each in calls])
            assert whole.proven == {each.id: audit.context_at(each).proven for each in calls}
            for call in calls:
                if call.kind != "compaction":
                    continue
                forms = {}
                for entry in chat.thread.path(call.id):
                    for key, each in whole.standings[entry.id].changed.items() if entry.id in whole.standings else ():
                        forms[key] = each
                folded = {key: (each[0].name, each[1]) for key, each in forms.items() if each is not None}
                told = audit.not_considered(call)
                assert folded == {
                    each.key: (each.form, each.event) for each in told if each.form not in ("branch", "other_wire")
                }
                left, seen = whole.standings[call.id], audit.context_at(call)
                assert left.sheets == seen.sheets
                assert tuple(page.png for page in left.pages if page is not None) == seen.pages or left.left_out
                assert None not in left.pages
