"""What a conversation keeps: nothing that was written changes, every action is one entry, every context comes again."""

from __future__ import annotations

import io
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from microfiche.auditing import audit
from microfiche.conversation import SHAKES, Conversation, Record
from microfiche.ladder import shelves
from microfiche.ladder.budget import RUNGS
from microfiche.pages import kept
from microfiche.transfer import export_messages

MODEL = "claude-haiku-4-5"


class Teller:
    """Tells one long story to a conversation, so many rounds at a time; ids of calls are never used again."""

    def __init__(self, chat: Conversation, characters: int = 1_400) -> None:
        self.chat = chat
        self.characters = characters
        self.told = 0

    def tell(self, rounds: int, last: int = 0) -> None:
        story = builders.Story()
        story.calls = 10 * self.told
        if self.chat.tip is None:
            story.user("Mend the queue. Never touch the vendored files.")
        for at in range(self.told, self.told + rounds):
            size = last if last and at == self.told + rounds - 1 else self.characters
            story.uses(
                ("read_file", {"path": f"src/{at if at % 3 else 0}.py"}, builders.code(at, size)),
                ("run", {"command": f"build {at}"}, builders.log(at, 44)),
                ("screenshot", {}, ("seen", builders.png(400, 300 + at % 40))),
                text=f"Round {at}.",
                thinking=builders.prose(at, 60),
            )
        self.told += rounds
        self.chat.append(story.native("anthropic"))


def raw(record: Record) -> tuple[list[Any], list[Any]]:
    """Every byte of every entry, its leaf among them, and of every blob, as they stand in the file."""
    with closing(sqlite3.connect(record.path)) as db:
        asked = "SELECT * FROM {} ORDER BY id"
        return db.execute(asked.format("entries")).fetchall(), db.execute(asked.format("blobs")).fetchall()


def step(teller: Teller, source: random.Random, at: int) -> str:
    """Do one thing at random; its name, or that it was refused."""
    chat = teller.chat
    ends = [e.id for e in chat.record.entries(conversation=chat.name) if e.on_path and e.open == 0]
    labels = list(chat.thread.labels())
    pins = list(chat.state().pins)
    budget = source.choice((9_000, 14_000, 30_000))

    def fail() -> None:
        fit = chat.context(model=MODEL, budget=budget)
        chat.recover(mf.Refusal("tokens", 2 * fit.tokens, fit.tokens), fit)

    def export() -> None:
        chat.record.export(io.StringIO())
        export_messages(chat)

    actions: dict[str, Callable[[], Any]] = {
        "append": lambda: teller.tell(source.randrange(1, 5)),
        "context": lambda: chat.context(model=MODEL, budget=budget),
        "compact": lambda: chat.compact(model=MODEL, budget=budget),
        "shake": lambda: chat.shake(source.choice([None, "elide", "images", "reasoning"]), model=MODEL),
        "leave out": lambda: chat.context(model=MODEL, budget=budget, policy=mf.Policy(rungs=("omit",))),
        "resume": lambda: chat.resume(model=MODEL, budget=budget),
        "recover": fail,
        "undo": chat.undo,
        "pin": lambda: chat.pin(f"fact {at}"),
        "unpin": lambda: chat.unpin(source.choice(pins)) if pins else None,
        "branch": lambda: chat.branch(source.choice(ends)),
        "fork": lambda: chat.fork(f"fork {at}"),
        "checkpoint": lambda: chat.checkpoint(f"label {at}"),
        "rewind": lambda: chat.rewind(source.choice(labels), report="no use") if labels else None,
        "export": export,
    }
    name = source.choice(list(actions) + ["append"] * 3)
    try:
        actions[name]()
    except (mf.NothingToCompact, mf.NoSuchEntry, mf.Gone, mf.CannotFit, mf.NothingLoaded) as refused:
        return f"{name}: {type(refused).__name__}"
    return name


@pytest.mark.parametrize(
    "seed, steps",
    [(seed, 25) for seed in range(3)] + [pytest.param(seed, 80, marks=pytest.mark.full) for seed in range(100, 125)],
)
def test_no_series_of_actions_changes_what_was_written(tmp_path: Path, seed: int, steps: int) -> None:
    """Order, bytes and leaf of every earlier entry are the same after each of them, and so is every blob."""
    source = random.Random(seed)
    done: Counter[str] = Counter()
    with Record.open(tmp_path / "work.mf") as record:
        teller = Teller(record.conversation("life"), 600)
        teller.tell(8)
        heads, (entries, blobs) = [record.head], raw(record)
        for at in range(steps):
            done[step(teller, source, at)] += 1
            now, held = raw(record)
            assert now[: len(entries)] == entries and held[: len(blobs)] == blobs
            entries, blobs = now, held
            heads.append(record.head)
        assert all(record.growth(old).holds and record.verify(head=old) for old in set(heads))
        assert record.verify(derived=True)
        assert sum(each.kind == "compaction" for each in record.entries()) >= 2, done


def test_the_context_comes_again_when_all_that_is_derived_is_gone(tmp_path: Path) -> None:
    """Same log, same policy, same context: after restart, without derived tables, and from the exported lines."""
    asked: list[dict[str, Any]] = [
        {"model": MODEL, "budget": 12_000},
        {"model": MODEL, "budget": 40_000, "policy": mf.Policy(tail_share=0.5, screenshots=1)},
        {"model": "gpt-5.6-sol", "budget": 15_000, "format": "openai_chat"},
        {"model": MODEL, "budget": 9_000, "policy": mf.Policy(rungs=("elide", "omit"))},
    ]

    def contexts(record: Record) -> list[str]:
        chat = record.conversation("triage")
        made = [chat.preview(force=force, **each).digest for each in asked for force in (False, True)]
        seen = audit(chat)
        calls = [each for each in chat.thread.path() if "context" in each.payload]
        assert len(calls) >= 3 and all(seen.context_at(each).proven for each in calls)
        return made + [seen.context_at(each).digest for each in calls]

    path = tmp_path / "work.mf"
    with Record.open(path) as record:
        chat = record.conversation("triage")
        teller = Teller(chat)
        for _ in range(3):
            teller.tell(8)
            chat.pin(f"keep {teller.told}")
            chat.context(model=MODEL, budget=12_000)
        chat.undo()
        teller.tell(2)
        chat.compact(model=MODEL, budget=12_000)
        want, head = contexts(record), record.head
        exported = io.StringIO()
        record.export(exported)

    def forget() -> None:
        kept.pages.clear()
        shelves.forget()

    forget()
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM running")
        db.execute("INSERT INTO search (search) VALUES ('delete-all')")
        db.commit()
    (tmp_path / "work.mf.heads").unlink()
    with Record.open(path) as record:
        assert contexts(record) == want and record.head == head
        forget()
        record.rebuild()
        assert contexts(record) == want and record.verify(derived=True)
    forget()
    exported.seek(0)
    with Record.import_(exported, tmp_path / "again.mf") as record:
        assert contexts(record) == want and record.head == head


def test_every_action_is_one_entry(tmp_path: Path) -> None:
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("triage")
        teller = Teller(chat)

        def left(action: Callable[[], Any]) -> dict[str, int]:
            before = record.head.size
            action()
            return dict(Counter(each.kind for each in record.entries(before + 1)))

        teller.tell(12)
        near = mf.Policy(tail_tokens=3_000)
        assert left(lambda: chat.shake("elide", model=MODEL, policy=near)) == {"compaction": 1}
        assert chat.state().plan.elided
        assert left(lambda: chat.shake("images", model=MODEL, policy=near)) == {"compaction": 1}
        assert chat.state().plan.dropped
        omit = {"model": MODEL, "budget": 8_000, "policy": mf.Policy(rungs=("omit",))}
        assert left(lambda: chat.context(**omit)) == {"compaction": 1}
        assert chat.state().plan.omitted
        assert left(lambda: chat.undo()) == {"undo": 1}
        assert left(lambda: chat.pin("word for word")) == {"pin": 1}
        assert left(lambda: chat.unpin(chat.pins()[0])) == {"unpin": 1}
        boundary = next(each.id for each in chat.thread.path() if each.turn == 3 and each.open == 0)
        tip = chat.tip
        assert left(lambda: chat.branch(boundary)) == {"move": 1}
        assert left(lambda: chat.checkpoint("early")) == {"label": 1}
        assert left(lambda: chat.branch(tip)) == {"move": 1}
        assert left(lambda: chat.rewind("early")) == {"move": 1}
        chat.branch(tip)

        # A fork is one entry; those behind it are the path again, with the label on it.
        path = Counter(each.kind for each in chat.thread.path())
        assert left(lambda: chat.fork("other")) == path + Counter(fork=1, label=1)

        # A resume that leaves out: the pass, the trim, and one loss for the one label in the stretch.
        assert left(lambda: chat.resume(**omit)) == {"compaction": 1, "trim": 1, "label_loss": 1}
        # What changes nothing leaves nothing.
        assert left(lambda: chat.preview(model=MODEL)) == {}
        assert record.verify(derived=True)


@pytest.mark.parametrize("rung", [*RUNGS, "all"])
def test_pins_stand_in_one_block_through_five_passes(tmp_path: Path, rung: str) -> None:
    """Word for word, in every context of five passes of each rung, and of all of them together."""
    texts = [
        "A leak is memory that\n  grows for an hour.",
        'Quote "exactly": {"a": [1, 2]} \\ 漢字 🧪',
        "Which of the two caches?",
    ]
    treated = {
        "elide": lambda plan: plan.elided,
        "images": lambda plan: plan.dropped,
        "reasoning": lambda plan: plan.reasoning,
        "snapshot": lambda plan: plan.archive,
        "summary": lambda plan: plan.summaries,
        "newest": lambda plan: plan.shortened,
        "omit": lambda plan: plan.omitted,
        "all": lambda plan: plan.archive,
    }[rung]
    rungs = {"all": RUNGS, "newest": ("newest", "omit")}.get(rung, (rung,))
    policy = mf.Policy(rungs=rungs, tail_tokens=3_000)
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("triage")
        teller = Teller(chat)
        teller.tell(4)
        pins = [chat.pin(text, kind) for text, kind in zip(texts, ("definition", "decision", "question"), strict=True)]
        options: dict[str, Any] = {"model": MODEL, "policy": policy, "budget": 12_000}
        options["summarize"] = lambda asked: f"- fact: more (turn {asked.turns[0]})"
        contexts = 0
        while len(chat.state().compactions) < 5:
            teller.tell(6, last=60_000 if rung == "newest" else 0)
            # By hand, where the rung alone need not make it fit.
            by_hand = rung in (*SHAKES, "snapshot")
            fit = chat.compact(model=MODEL, policy=policy) if by_hand else chat.context(**options)
            contexts += 1
            assert contexts < 20
            said = [message["content"] for message in fit.messages]
            held = [block for content in said if isinstance(content, list) for block in content]
            spoken = [content for content in said if isinstance(content, str)]
            spoken += [block["text"] for block in held if block["type"] == "text"]
            blocks = [text for text in spoken if any(pin in text for pin in texts)]
            (block,) = blocks
            for pin in pins:
                assert block.count(f"[{pin.kind}] {pin.text}") == 1
                assert json.dumps(fit.messages).count(json.dumps(pin.text)[1:-1]) == 1
        assert treated(fit.plan)


@pytest.mark.parametrize(
    "model, format",
    [("gpt-5.6-sol", "openai_chat"), ("gemini-3-pro", "gemini"), ("claude-opus-4-5", "anthropic")],
)
def test_a_switch_of_models_makes_the_plan_that_a_fresh_conversation_gets(
    tmp_path: Path, model: str, format: str
) -> None:
    """Text or pages, the plan, the pixels and the whole context are those of a record that no pass has touched."""
    with Record.open(tmp_path / "work.mf") as record:
        chat, fresh = record.conversation("switched"), record.conversation("fresh")
        for each in (chat, fresh):
            teller = Teller(each)
            for _ in range(3):
                teller.tell(8)
                if each is chat:
                    chat.context(model=MODEL, budget=14_000)
        first = chat.context(model=MODEL, budget=14_000)
        assert len(chat.state().compactions) >= 2 and first.pages
        options: dict[str, Any] = {"model": model, "format": format, "budget": 14_000}
        switched, want = chat.context(**options), fresh.context(**options)
        assert want.pages
        assert [page.digest for page in switched.pages] == [page.digest for page in want.pages]
        assert switched.plan == want.plan and switched.digest == want.digest
        # A model that reads no pages gets none, whatever was drawn before.
        options["vision"] = False
        switched, want = chat.context(**options), fresh.context(**options)
        assert not switched.pages and switched.plan == want.plan and switched.digest == want.digest
