"""An atlas in use is kept with the record: old pages prove and are drawn again where the font is gone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from microfiche.pages import atlas as atlases
from microfiche.pages import fonts
from microfiche.pages.atlas import Atlas

MODEL = "claude-haiku-4-5"
HAN = "漢字中文書"
BUDGET = 8_000


def write_font(path: Path, turn: int = 0) -> Path:
    rows = {
        each: [(at + 3) * 40503 >> row & 0x7FFE if 2 <= row < 14 else 0 for row in range(16)]
        for at, each in enumerate(HAN)
    }
    lines = [
        f"{ord(each):04X}:" + "".join(f"{(row << turn) & 0xFFFF:04X}" for row in drawn) for each, drawn in rows.items()
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process that has never drawn knows of atlases."""
    fonts._atlas.cache_clear()
    monkeypatch.setattr(atlases, "_MADE", {})
    monkeypatch.setattr(atlases, "_KEPT", {})


def story() -> Any:
    made = builders.Story().user("Look after the queue.")
    for at in range(8):
        made.uses(("ask", {"question": at}, f"{HAN * 40}\n{builders.code(at, 3_000)}"))
    return made.native("anthropic")


def live(record: mf.Record, policy: mf.Policy) -> int:
    chat = record.conversation("work")
    chat.append(story())
    return chat.compact(model=MODEL, budget=BUDGET, policy=policy).entry or 0


def test_old_pages_are_drawn_again_where_the_font_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    font = write_font(tmp_path / "a.hex")
    with mf.Record.open(tmp_path / "work.mf") as record:
        entry = live(record, mf.Policy(font=(str(font),)))
        chat = record.conversation("work")
        drawn = [
            page.digest for page in chat.preview(model=MODEL, budget=BUDGET, policy=mf.Policy(font=str(font))).pages
        ]
    font.unlink()
    forget(monkeypatch)
    with mf.Record.open(tmp_path / "work.mf", read_only=True) as record:
        seen = mf.audit(record.conversation("work")).context_at(entry)
        assert seen.proven and seen.redrawn and len(seen.pages) == len(seen.sheets) > 1
        assert [sheet.digest for sheet in seen.sheets] == drawn
        kept = Atlas.load(record.entry(entry).payload["atlases"][0])
        assert HAN in mf.read_back(list(seen.pages), font=kept)


def test_pages_of_another_version_of_our_font_are_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mf.Record.open(tmp_path / "work.mf") as record:
        entry = live(record, mf.Policy())
        [data] = record.entry(entry).payload["atlases"]
        kept = Atlas.load(data)
        assert kept == atlases.own(kept.cell, kept.ink)
    # A version whose font has other glyphs: the name of the one on record is no longer that of its own.
    forget(monkeypatch)
    other = atlases.make(kept.cell, kept.ink, [(0x6F22, 2, 4, 2, b"\x40\xff\x90\xff\xff\x40\xff\x00")])
    monkeypatch.setattr(atlases, "own", lambda cell, ink: other)
    with mf.Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("work")
        seen = mf.audit(chat).context_at(entry)
        assert seen.proven and seen.redrawn and seen.pages
        # What comes now is a plan of its own.
        fit = chat.compact(model=MODEL, budget=BUDGET)
        assert fit.plan.archive is not None and fit.plan.archive.form.atlas == other.digest


def test_an_atlas_that_is_none_any_more_still_proves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mf.Record.open(tmp_path / "work.mf") as record:
        entry = live(record, mf.Policy())
        kept = Atlas.load(record.entry(entry).payload["atlases"][0])
    forget(monkeypatch)
    other = atlases.make(kept.cell, kept.ink, [(0x6F22, 2, 4, 2, b"\x40\xff\x90\xff\xff\x40\xff\x00")])
    monkeypatch.setattr(atlases, "own", lambda cell, ink: other)

    def refuse(data: bytes) -> Atlas:
        raise mf.BadInput("the atlas lacks some of the glyphs that marks are made of", "atlas")

    monkeypatch.setattr(Atlas, "load", refuse)
    with mf.Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("work")
        seen = mf.audit(chat).context_at(entry)
        assert seen.proven and not seen.redrawn and not seen.pages
        fit = chat.compact(model=MODEL, budget=BUDGET)
        assert fit.plan.archive is not None and fit.plan.archive.form.atlas == other.digest


def test_an_atlas_is_kept_once(tmp_path: Path) -> None:
    font = write_font(tmp_path / "a.hex")
    policy = mf.Policy(font=(str(font),))
    with mf.Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("work")
        chat.append(story())
        for _ in range(3):
            chat.context(model=MODEL, budget=BUDGET, policy=policy)
            chat.append(builders.Story(calls=50).uses(("ask", {}, builders.code(9, 12_000))).native("anthropic"))
        passes = [entry for entry in record.entries() if entry.kind == "compaction"]
        assert len(passes) == 3
        assert [len(entry.payload["atlases"]) for entry in passes] == [1, 0, 0]


def test_a_plan_goes_on_with_its_font_and_begins_anew_with_another(tmp_path: Path) -> None:
    font = write_font(tmp_path / "a.hex")
    messages = story()
    first = mf.compact(messages, model=MODEL, budget=BUDGET, policy=mf.Policy(font=str(font)))
    again = mf.compact(
        messages,
        model=MODEL,
        budget=BUDGET,
        policy=mf.Policy(font=str(font)),
        plan=mf.Plan.from_json(first.plan.to_json()),
    )
    assert [page.png for page in again.pages] == [page.png for page in first.pages]
    without = mf.compact(messages, model=MODEL, budget=BUDGET, plan=first.plan)
    # With the font only those stand as code points that the end of a row would part.
    assert sum(without.receipt.escapes.values()) > 20 * sum(first.receipt.escapes.values())
    shutil.copy(font, tmp_path / "b.hex")
    moved = mf.compact(
        messages, model=MODEL, budget=BUDGET, plan=first.plan, policy=mf.Policy(font=str(tmp_path / "b.hex"))
    )
    assert [page.digest for page in moved.pages] == [page.digest for page in first.pages]
    with pytest.raises(mf.BadInput, match="font is 7; it is a tuple of names or files of fonts"):
        mf.Policy(font=7)  # type: ignore[arg-type]
    with pytest.raises(mf.BadInput, match="no such font file"):
        mf.compact(messages, model=MODEL, budget=BUDGET, policy=mf.Policy(font=str(tmp_path / "gone.hex")))
    assert mf.Policy.from_dict(mf.Policy(font=str(font)).to_dict()) == mf.Policy(font=(str(font),))
