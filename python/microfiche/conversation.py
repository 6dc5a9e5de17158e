"""A conversation: a record and the ladder together.

Everything that happens to a conversation is an entry of its record; the context for the next call is
folded from the entries of its path and projected. The record never learns what a plan means, the
ladder never learns where messages are kept: they meet here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack

from microfiche import agent_tools, fit, formats, models, record
from microfiche.agent_tools import PIN_KINDS, as_call
from microfiche.errors import (
    BadInput,
    Busy,
    CannotFit,
    Gone,
    NoSuchEntry,
    NothingLoaded,
    NothingToCompact,
    NothingToRetry,
    PinsTooLarge,
    Stale,
)
from microfiche.fit import Context
from microfiche.ladder.budget import FREE, Policy, budget_for
from microfiche.ladder.difference import difference
from microfiche.ladder.elide import PLACEHOLDER_VERSION
from microfiche.ladder.own import refuse_own
from microfiche.ladder.plan import VERSION as PLAN
from microfiche.ladder.plan import Plan
from microfiche.ladder.summarize import Summarizer
from microfiche.ladder.usage import cached, reported
from microfiche.messages import History, Message, Text
from microfiche.models import Fidelity
from microfiche.pages import guide
from microfiche.pages.atlas import Atlas, named, own
from microfiche.pages.render import GRAMMAR
from microfiche.path import NOTHING, PathState, Pin, Sheet, fold
from microfiche.record import Draft, Entry, Label, Ref
from microfiche.recovery import PASSES, Cure, Learnt, cure, meet, smaller, unmet, within
from microfiche.refusal import Refusal, refusal

CLAIM_KINDS = ("query", "document", "execution", "check")
"""What a claim may rest on."""

SHAKES = ("elide", "images", "reasoning")
"""The reducers that lose nothing but to the record."""

VERSIONS = {"plan": PLAN, "grammar": GRAMMAR, "guide": guide.VERSION, "placeholder": PLACEHOLDER_VERSION}
"""Of what a context is made by, as a pass records them."""

_SUMMARY_FAILED = "summary_failed"

_PIN_SHARE = 0.10
"""Share of the budget that pins may take."""

_REASONS = {
    "empty": "append or import first",
    "all_recent": "everything stands in the protected tail; go on, and ask again later",
    "nothing_new": "nothing came since the pass before",
    "would_grow": "pages would cost more than the text",
    "does_not_pay": "pages would cost about as much as the text; a smaller fidelity may pay",
    "no_vision": "the model reads no pages; pass vision=True if it does",
    "disabled": "allow a rung in the policy",
}


class Options(TypedDict, total=False):
    """What a context is asked for with, beside its model: see :func:`microfiche.compact`."""

    system: Any
    tools: list[Any] | None
    max_tokens: int | None
    budget: int | None
    pending: Any
    policy: Policy | None
    fidelity: Fidelity
    vision: bool | None
    format: str | None
    summarize: Summarizer | None


class Record(record.Record):
    """The record of an agent's conversations, in one file. See :class:`microfiche.record.Record`."""

    def conversation(self, name: str) -> Conversation:
        """The conversation of that name; it is there from its first entry on."""
        return Conversation(self, name)


@dataclass(frozen=True, slots=True)
class Rewound:
    """What a rewind did: the label, the entry it stands on, how many turns it left, the report that was added."""

    label: str
    entry: int | None
    turns_left: int
    report: int | None


class Conversation:
    """One conversation of a record.

    A handle may be shared by threads. Two handles (or processes) that write the same path: one
    wins, the other gets a :class:`~microfiche.errors.Conflict` that names the new tip.
    """

    def __init__(self, record: record.Record, name: str) -> None:
        self.record = record
        self.thread = record.thread(name)
        self._pass = threading.Lock()
        self._state: tuple[int | None, PathState] = (None, PathState())
        self._pin_limit: tuple[models.Ruler, int] | None = None
        self._rewinds: dict[str, tuple[Label, str]] = {}

    @property
    def name(self) -> str:
        """What the conversation is called in its record."""
        return self.thread.name

    @property
    def tip(self) -> int | None:
        """The entry that the conversation stands on; ``None`` before the first."""
        return self.thread.tip

    # What happened

    def append(
        self,
        messages: Any,
        *,
        context: Context | None = None,
        usage: Any = None,
        format: str | None = None,
    ) -> list[Entry]:
        """Add native messages that leave no call open: one transaction, durable when it returns.

        ``context`` is the one that the assistant's message was produced under: its digest is kept
        with the message, with all that it takes to make that context again, and so is the ``usage``
        that the provider reported. ``format`` names the wire where the messages do not tell.

        A rewind that the model asked for by a tool in these messages follows them in the same
        transaction: they stay on the path that is left.

        Raises :class:`~microfiche.errors.TurnOpen`, which names the calls without a result, and
        :class:`~microfiche.errors.Conflict`, and :class:`~microfiche.errors.OwnOutput` for pages and guides of ours.
        """
        native = messages if isinstance(messages, list) else [messages]
        prefer = format or (context.receipt.format if context is not None else self.state().wire()) or None
        history = formats.read(native, format, where=self.name, prefer=prefer)
        if not history.messages:
            raise BadInput("nothing to append", self.name, "pass at least one message")
        refuse_own(history, results=False)
        told: dict[str, Any] = {}
        if context is not None:
            told = _call(context)
        if usage is not None:
            told["usage"] = formats.common.plain(usage)
        first = next((at for at, each in enumerate(history.messages) if each.role == "assistant"), 0)
        drafts = [
            Draft("message", {"wire": history.wire} | (told if at == first else {}), message=message)
            for at, message in enumerate(history.messages)
        ]
        # Gemini's calls may have no id: there the name of the tool must do.
        results = [result for message in history.messages for result in message.results]
        answered = [each.call_id if each.call_id in self._rewinds else "" for each in results if each.name == "rewind"]
        waiting = [self._rewinds[id] for id in answered if id in self._rewinds]
        written = self.thread.commit([*drafts, *(_back(*waiting[-1]) if waiting else ())])
        for id in answered:
            self._rewinds.pop(id, None)
        return written[: len(drafts)]

    def started(self, call: Any) -> Entry:
        """Leave a trace that a tool is about to run, so that a crash during it can be told.

        ``call`` is a native tool call of any wire (an object or dict), or a
        :class:`~microfiche.messages.ToolCall`.
        """
        return self.thread.started(as_call(call))

    def fail(self, error: Any, context: Context | None = None) -> Entry:
        """Record a failure of a model call: what was raised, and the context that was sent."""
        return self.thread.side("failure", self.tip, _failure(error, refusal(error), context))

    # What the model is sent

    def state(self, tip: Any = "tip") -> PathState:
        """What the path amounts to, by default at the tip."""
        at = self.thread.tip if tip == "tip" else tip
        known, state = self._state
        if known == at and at is not None:
            return state
        state = fold(self.thread.path(at))
        self._state = (at, state)
        return state

    def context(self, *, model: str, **options: Unpack[Options]) -> Context:
        """The context for the next call; over the threshold it is compacted, and the pass recorded.

        ``pending`` are native messages that will be sent and are not appended yet; the other options
        are those of :func:`microfiche.compact`.

        :class:`~microfiche.errors.Conflict` if the tip moved while a pass was made: it is of another path, and nothing
        of it is recorded. Ask again.
        """
        with self._alone():
            return self._context(model, options, "threshold")

    def preview(self, *, model: str, force: bool = False, **options: Unpack[Options]) -> Context:
        """The context that :meth:`context` would give now (with ``force``, :meth:`compact`); nothing is recorded."""
        return self._projected(model, options, force)

    def _context(self, model: str, options: Options, why: str, force: bool = False) -> Context:
        return self._taken(self._projected(model, options, force), why)

    def _taken(self, made: Context, why: str) -> Context:
        """The context with its pass on the path, if it has a new plan.

        :class:`~microfiche.errors.Conflict` if the tip has moved since: the plan is one of another path.
        """
        before = self.state(made.entry)
        self._failed_summary(made)
        if (made.plan or before.plan) and made.plan != before.plan:
            return replace(made, entry=self._record(before, made, why).id)
        return made

    def _failed_summary(self, made: Context) -> None:
        for rung in made.receipt.rungs:
            if rung.reason.startswith(_SUMMARY_FAILED):
                self.thread.side("failure", self.tip, {"error": "summary", "what": rung.reason})

    def _projected(self, model: str, options: Options, force: bool) -> Context:
        learnt = self.learnt(models.find(model).id)
        told: Any = learnt.narrowed(options, model)
        self._check_pins(self.state(), model, told)
        if not force and (again := self._again(model, options)) is not None:
            told, ratio = again
            return self._fitted(model, told, ratio, force)
        made = self._fitted(model, told, learnt.ratio, force)
        if learnt.size is None:
            return made
        return within(
            learnt.size,
            made,
            told.get("budget"),
            told.get("policy") or Policy(),
            lambda *less: self._fitted(model, told | dict(zip(_LESS, less, strict=True)), learnt.ratio, force),
        )

    def _again(self, model: str, options: Options) -> tuple[Any, float] | None:
        """What a recovery asked for, if nothing was said since: to be sent as it was made, whatever holds from then on.

        The options, and the ratio that they were met by.
        """
        failed = next((e.payload for e in reversed(self._failures()) if "again" in e.payload), None)
        waiting = formats.common.plain(options.get("pending") or []) or None
        if failed is None or failed["request"]["model"] != model or failed["request"].get("pending") != waiting:
            return None
        again = failed["again"]
        policy = replace(Policy.from_dict(again["policy"]), rules=(options.get("policy") or Policy()).rules)
        told = {**options, "budget": again["budget"], "max_tokens": again["max_tokens"], "policy": policy}
        return told, again["ratio"]

    def _fitted(self, model: str, options: Options, ratio: float, force: bool = False) -> Context:
        tip = self.thread.tip
        state = self.state(tip)
        asked = {name: value for name, value in options.items() if name != "pending"}
        wire = options.get("format") or state.wire() or models.find(model, options.get("vision")).wire
        pending = formats.common.plain(options.get("pending") or [])
        native = pending if isinstance(pending, list) else [pending]
        waiting = formats.read(native, prefer=wire) if native else History([], wire)
        refuse_own(waiting, results=False)
        policy = options.get("policy")
        if policy is not None and policy.goal == "cost" and policy.cached is None:
            asked["policy"] = replace(policy, cached=_cached(state, models.find(model).id))
        made = fit.fit(
            state.history(wire, waiting.messages),
            model=model,
            # The places of parts that a plan names are those of its wire.
            plan=state.plan if state.plan and state.planned == wire else None,
            ratio=ratio,
            spared=tuple(state.spared),
            trimmed=_joined(state.trims.values()),
            force=force,
            anchor=_anchor(state, models.find(model).id),
            **asked,  # type: ignore[arg-type]
        )
        kept = {"pending": native or None} | ({} if policy is None else {"policy": policy})
        return replace(made, asked=made.asked | kept, entry=tip)

    def _check_pins(self, state: PathState, model: str, options: Options) -> None:
        found = models.find(model)
        policy = options.get("policy") or Policy()
        budget = budget_for(found, policy, options.get("budget"), options.get("max_tokens")).tokens
        self._pin_limit = (models.Ruler(found), int(_PIN_SHARE * budget))
        self._demand_room({str(pin.entry): pin.text for pin in state.pins.values()})

    def _demand_room(self, texts: dict[str, str]) -> None:
        """Pins that fill their share of the budget are an error: they would push out what they are for."""
        if self._pin_limit is None:
            return
        ruler, limit = self._pin_limit
        weights = {name: ruler.text(text) for name, text in texts.items()}
        taken = sum(weights.values())
        if taken > limit:
            named = ", ".join(f"{name} ({tokens:,} tokens)" for name, tokens in weights.items())
            raise PinsTooLarge(f"pins take {taken:,} of {limit:,} tokens: {named}", self.name, "unpin some of them")

    def _record(self, state: PathState, made: Context, why: str) -> Entry:
        """Put a pass on the path: when, why, what it changed, its new pages, tokens before and after."""
        before, receipt, plan = state.plan, made.receipt, made.plan
        turns = [spot[0] for spot in (plan.elided.keys() - before.elided.keys())]
        turns += [spot[0] for spot in (plan.dropped.keys() - before.dropped.keys())]
        turns += [spot[0] for spot in (plan.shortened.keys() - before.shortened.keys())]
        turns += [turn for turn in plan.reasoning if turn not in before.reasoning]
        turns += [turn for span in plan.omitted if span not in before.omitted for turn in span]
        turns += [turn for each in plan.summaries if each not in before.summaries for turn in (each.first, each.last)]
        if plan.archive is not None:
            paged = before.archive.last if before.archive is not None else plan.archive.first - 1
            turns += [paged + 1, plan.archive.last] if plan.archive.last > paged else []
        payload = {
            "why": why,
            "span": [min(turns, default=0), max(turns, default=0)],
            "plan": difference(before, plan),
            "wire": receipt.format,
            "pages": Sheet.patch(state.sheets, made.drawn),
            "before": {"tokens": receipt.before.tokens, "images": receipt.before.images},
            "after": {"tokens": receipt.after.tokens, "images": receipt.after.images},
            "rungs": [[rung.rung, rung.reason, rung.after.tokens] for rung in receipt.rungs],
            # Blobs, so that the record keeps each once: its pages can be drawn again where the font is gone.
            "atlases": [each.data for each in _new_atlases(before, plan)],
            "versions": VERSIONS,
            **_call(replace(made, entry=None)),
        }
        if made.asked["pending"] is not None:
            payload["pending"] = made.asked["pending"]
        return self.thread.append_event("compaction", payload, expect_tip=made.entry)

    def learnt(self, model: str) -> Learnt:
        """What refusals of this model taught here."""
        found = Learnt()
        for entry in self.thread.sides("failure"):
            told = entry.payload
            if told.get("model") != model:
                continue
            if "learnt" in told:
                found |= Learnt(**told["learnt"])
            elif str(told.get("kind")).startswith("tokens") and told.get("used"):
                found |= Learnt(max(told["used"] / max(told["estimate"], 1), 1.0))
        return found

    def ratio(self, model: str) -> float:
        """True tokens over estimated ones, as refusals of this model taught it here; never below 1."""
        return self.learnt(model).ratio

    def standing(self, *, model: str, **options: Unpack[Options]) -> Context:
        """The context that the path makes as it stands: with the plan it has, and no pass whatever its size."""
        state = self.state()
        told: Any = options | {"budget": state.plan.budget if state.plan else _UNBOUNDED}
        made = self._fitted(model, told, 1.0)
        return replace(made, asked=made.asked | {"budget": options.get("budget")})

    def recover(self, error: Any, context: Context) -> Context:
        """After a refusal: record it, learn from it, and make a context that fits, without a model.

        ``error`` is what the client raised, or an answer that came back truncated or empty. What it taught of the
        window, of the ratio of true tokens to estimated ones and of the bytes of a request holds for every context
        of this model from then on.
        :class:`~microfiche.errors.CannotFit` at the third refusal without an append between.
        """
        told = self._told(error, context)
        with self._alone():
            attempt = self._refusals() + 1
            if attempt > PASSES:
                self.thread.side("failure", self.tip, _failure(error, told, context))
                raise unmet("refused three times in a row", context, told, self.name)
            found, made = self._recovered(told, context, attempt)
            failure = _failure(error, told, context) | {"learnt": found.learnt.to_dict()}
            if isinstance(made, Context):
                policy = made.asked["policy"].to_dict()
                failure["again"] = {
                    **{name: made.asked[name] for name in _AGAIN},
                    "policy": policy,
                    "ratio": found.ratio,
                }
            self.thread.side("failure", self.tip, failure)
            if isinstance(made, CannotFit):
                raise made
            return self._taken(made, "refusal")

    def preview_recovery(self, error: Any, context: Context) -> Context:
        """The context that :meth:`recover` would give now; nothing is recorded."""
        made = self._recovered(self._told(error, context), context, min(self._refusals() + 1, PASSES))[1]
        if isinstance(made, CannotFit):
            raise made
        return made

    def _told(self, error: Any, context: Context) -> Refusal:
        window = models.find(context.receipt.model).context_window
        told = refusal(error, window=window, expected=context.tokens)
        if told is None:
            raise BadInput("this is no refusal for size", self.name, "handle the error itself; fail() records it")
        return told

    def _recovered(self, told: Refusal, context: Context, attempt: int) -> tuple[Cure, Context | CannotFit]:
        """What cures a refusal, and the context that follows from it or why there is none."""
        asked: Any = dict(context.asked)
        model = asked.pop("model")
        found = cure(told, context, asked.get("policy") or Policy(), self.learnt(context.receipt.model), attempt)

        def make(budget: int | None, policy: Policy) -> Context:
            options = asked | {"budget": budget, "policy": policy, "max_tokens": found.max_tokens}
            return self._fitted(model, options, found.ratio)

        try:
            made = meet(found, make, context)
        except CannotFit as error:
            return found, error
        if smaller(made, context):
            return found, made
        return found, unmet("a pass leaves the request as large as it was", context, told, self.name)

    def _refusals(self) -> int:
        """Refusals since the last message on the path."""
        return sum("kind" in entry.payload for entry in self._failures())

    def _failures(self) -> list[Entry]:
        """Failures since the last message on the path."""
        last = max((entry.id for entry, _ in self.state().messages), default=0)
        return [entry for entry in self.thread.sides("failure") if entry.id > last]

    # Passes by hand

    def compact(self, *, model: str, dry_run: bool = False, **options: Unpack[Options]) -> Context:
        """Compact now, whatever the threshold says; with ``dry_run`` nothing is recorded.

        :class:`~microfiche.errors.NothingToCompact` says in one word why nothing changed.
        """
        with self._alone():
            return self._by_hand(model, options, "by hand", dry_run)

    def shake(
        self, what: str | None = None, *, model: str, dry_run: bool = False, **options: Unpack[Options]
    ) -> Context:
        """Only the free reducers: ``elide``, ``images``, ``reasoning``, or the first two. No page, no model.

        With ``dry_run`` nothing is recorded.
        """
        rungs = ("elide", "images") if what is None else (what,)
        if not set(rungs) <= set(SHAKES):
            raise BadInput(f"no reducer {what!r}", "shake", f"it is one of {', '.join(SHAKES)}")
        options["policy"] = replace(options.get("policy") or Policy(), rungs=rungs)
        with self._alone():
            return self._by_hand(model, options, f"shake {' '.join(rungs)}", dry_run)

    def _by_hand(self, model: str, options: Options, why: str, dry_run: bool) -> Context:
        made = self._projected(model, options, force=True)
        before = self.state(made.entry).plan
        if made.plan and made.plan != before:
            return made if dry_run else self._taken(made, why)
        if not dry_run:
            self._failed_summary(made)
        allowed = (options.get("policy") or Policy()).rungs
        reasons = {rung.reason for rung in made.receipt.rungs if rung.reason}
        words = ("would_grow", "does_not_pay", "no_vision")
        reason = next((word for word in words if word in reasons), "nothing_new" if before else "all_recent")
        if not self.state().messages:
            reason = "empty"
        elif not set(allowed) & set(FREE):
            reason = "disabled"
        raise NothingToCompact(f"nothing was compacted: {reason}", self.name, _REASONS[reason], reason)

    def undo(self, entry: int | None = None) -> Entry:
        """Take back the newest pass in force: an event; later passes leave its span alone while they can."""
        tip = self.tip
        passes = self.state(tip).compactions
        if not passes:
            raise NoSuchEntry("no pass to undo", self.name, "compact first")
        newest = passes[-1]
        if entry is not None and entry != newest.id:
            if entry not in {each.id for each in passes}:
                raise BadInput(f"entry {entry} is no pass in force", self.name, f"the newest is {newest.id}")
            raise BadInput(f"entry {entry} is not the newest pass in force", self.name, f"undo {newest.id} first")
        return self.thread.append_event("undo", {}, about=newest.id, expect_tip=tip)

    # Pins and claims

    def pin(self, text: str, kind: str = "decision") -> Pin:
        """Keep a text word for word in every context, until it is unpinned.

        :class:`~microfiche.errors.PinsTooLarge` if that is more than the pins' share of the budget of the
        context that was asked for last.
        """
        if not text.strip():
            raise BadInput("an empty pin", self.name, "give its text")
        self._demand_room({str(pin.entry): pin.text for pin in self.state().pins.values()} | {"this one": text})
        entry = self.thread.append_event("pin", {"kind": kind, "text": text})
        return Pin(entry.id, kind, text)

    def unpin(self, pin: int | Pin) -> Entry:
        """Let a pin go: an event. A question that was answered is closed so."""
        id = pin.entry if isinstance(pin, Pin) else pin
        if id not in self.state().pins:
            known = ", ".join(map(str, self.state().pins)) or "none"
            raise NoSuchEntry(f"no pin {id} in force", self.name, f"there are {known}")
        return self.thread.append_event("unpin", {}, about=id)

    def pins(self, kind: str | None = None) -> list[Pin]:
        """Pins in force, oldest first."""
        return [pin for pin in self.state().pins.values() if kind is None or pin.kind == kind]

    def claim(self, text: str, rests_on: Sequence[tuple[str, int | Entry]] = ()) -> Entry:
        """Record what is claimed and what it rests on: pairs of a kind (see :data:`CLAIM_KINDS`) and an entry."""
        links = []
        for kind, on in rests_on:
            if kind not in CLAIM_KINDS:
                raise BadInput(f"a claim does not rest on a {kind!r}", self.name, f"kinds are {', '.join(CLAIM_KINDS)}")
            id = on.id if isinstance(on, Entry) else on
            self.record.entry(id)
            links.append({"kind": kind, "entry": Ref(id)})
        return self.thread.side("claim", self.tip, {"text": text, "rests_on": links})

    # The tree

    def checkpoint(self, label: str) -> Label:
        """Name the turn boundary that the conversation stands on."""
        if not label.strip():
            raise BadInput("a checkpoint without a name", self.name, "give it one, to rewind to it by")
        return self.thread.label(label)

    def branch(self, entry: int | None) -> Entry:
        """Move the tip to another path entry; nothing is lost, and moving back is another move."""
        return self.thread.move(entry)

    def fork(self, name: str) -> Conversation:
        """Copy this path into a new conversation with entries of its own."""
        return type(self)(self.record, self.thread.fork(name).name)

    def rewind(self, label: str, report: str | None = None, *, planned_on: int | None = None) -> Rewound:
        """Go back to a checkpoint and say there what was learnt.

        :class:`~microfiche.errors.Gone` if a trim left the label behind, :class:`~microfiche.errors.Stale`
        if the tip is not ``planned_on`` any more.
        """
        tip = self.thread.refresh()
        if planned_on is not None and planned_on != tip:
            raise Stale(f"the rewind was planned on entry {planned_on}, the tip is {tip}", self.name, "decide again")
        found = self._checkpoint(label)
        before = {entry.turn for entry, _ in self.state().messages}
        written = self.thread.commit(_back(found, report))
        after = {entry.turn for entry in self.thread.path(found.entry) if entry.message is not None}
        return Rewound(label, found.entry, len(before - after), written[1].id if report else None)

    def rewind_after(self, call: str, label: str, report: str) -> None:
        """Go back to a checkpoint as soon as the result of a call is appended: what the model's tool asks for.

        The messages of that call stay on the path that is left. Of several calls in one batch the last counts.
        """
        self._rewinds[call] = (self._checkpoint(label), report)

    def _checkpoint(self, label: str) -> Label:
        found = self.thread.labels().get(label)
        if found is not None:
            return found
        lost = [e for e in self.thread.sides("label_loss") if e.payload.get("name") == label]
        if lost:
            raise Gone(
                f"checkpoint {label!r} lies in a stretch that was trimmed",
                self.name,
                f"branch to entry {lost[-1].payload.get('entry')} to stand there all the same",
            )
        known = ", ".join(self.thread.labels()) or "none"
        raise NoSuchEntry(f"no checkpoint {label!r}", self.name, f"there are {known}")

    # Going on

    def resume(self, *, model: str, **options: Unpack[Options]) -> Context:
        """The context to go on with after a restart: head, pins, the compacted view, the newest turns.

        What had to be left out is recorded as a trim, and labels in that stretch as lost.
        """
        with self._alone():
            if not self.state().messages:
                raise NothingLoaded("the conversation holds no message", self.name, "append or import first")
            before = self.state().plan.omitted
            made = self._context(model, options, "resume")
            tip = made.entry
            for first, last in made.plan.omitted:
                if (first, last) not in before:
                    tip = self._trim(first, last, tip)
            return made

    def _trim(self, first: int, last: int, tip: int | None) -> int:
        """Put a trim on the path that ends with ``tip``; the entry of it."""
        entries = {entry.id for entry, _ in self.state().messages if first <= (entry.turn or 0) <= last}
        drafts: list[Draft] = [Draft("trim", {"first": first, "last": last})]
        for label in self.thread.labels().values():
            if label.entry in entries:
                drafts.append(Draft("label_loss", {"name": label.name, "entry": label.entry}, label.id))
        return self.thread.commit(drafts, expect_tip=tip)[0].id

    def retry(self) -> Context:
        """The context of the failed attempt, to send again.

        :class:`~microfiche.errors.NothingLoaded` for a conversation without messages,
        :class:`~microfiche.errors.NothingToRetry` if nothing failed since the last message.
        """
        state = self.state()
        if not state.messages:
            raise NothingLoaded("the conversation holds no message", self.name, "append or import first")
        last = max(entry.id for entry, _ in state.messages)
        failed = [e for e in self.thread.sides("failure") if e.id > last and "request" in e.payload]
        if not failed:
            raise NothingToRetry("nothing failed since the last message", self.name, "ask for a context instead")
        asked = dict(failed[-1].payload["request"])
        if "policy" in asked:
            asked["policy"] = Policy.from_dict(asked["policy"])
        return self.context(**asked)

    # Looking back

    def recall(self, turn: int, format: str | None = None) -> list[Any]:
        """The original messages of a turn, native, in the wire they came in."""
        entries = [entry for entry in self.thread.turn_entries(turn) if entry.message is not None]
        wire = format or next((w for e in entries if (w := e.payload.get("wire"))), "") or "openai_chat"
        messages = [entry.message for entry in entries if entry.message is not None]
        body, _ = formats.write(History(messages, wire, wire=wire), wire)
        found: list[Any] = body[formats.list_key(wire)]
        return found

    def search(self, text: str, limit: int = 20, offset: int = 0) -> list[record.Hit]:
        """Turns that hold the words of a text, newest first."""
        return self.thread.search(text, limit, offset)

    def said(self, turn: int) -> tuple[Message, ...]:
        """The original messages of a turn in the form that all wires share."""
        return self.thread.turn(turn)

    def entry(self, id: int) -> Entry:
        """An entry of the record by its number."""
        return self.record.entry(id)

    def answer(self, call: Any) -> Any:
        """Answer a call of one of our tools (see :func:`microfiche.tools`): its result, native in the call's wire.

        For Anthropic that is a ``tool_result`` block and for Gemini a ``functionResponse`` part, to stand with those
        of the other calls in one message; for OpenAI a message or item of its own. Whatever is wrong with the
        arguments comes back as an error result, which the model reads. What is recalled or found is bounded, and
        goes on on the next page.

        A rewind takes effect with the :meth:`append` that holds this result.
        """
        return agent_tools.answer(self, call, self.state().wire() or "anthropic")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._pass.acquire(blocking=False):
            raise Busy("another pass is under way", self.name, "wait for it, and ask again")
        try:
            yield
        finally:
            self._pass.release()


def _back(label: Label, report: str | None) -> list[Draft]:
    """The entries of a rewind."""
    drafts = [Draft("move", {"label": label.name}, label.entry)]
    if report:
        words = f"[report on the stretch that was left, back at checkpoint {label.name}]\n{report}"
        drafts.append(Draft("report", {"label": label.name}, message=Message("user", (Text(words),))))
    return drafts


def _new_atlases(before: Plan, plan: Plan) -> list[Atlas]:
    """The glyphs that pages of a plan are drawn with, and none of the plan before."""
    known = {form.atlas for form in before.forms}
    found = {form.atlas: form for form in plan.forms if form.atlas and form.atlas not in known}
    return [named(name, form.cell, form.ink) or own(form.cell, form.ink) for name, form in found.items()]


def _joined(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges in order, those that touch as one."""
    out: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(last, out[-1][1]))
        else:
            out.append((first, last))
    return tuple(out)


_BELIEVED = 4
"""A report that is so many times off the estimate, up or down, is of something else, or of nothing."""


def _anchor(state: PathState, model: str) -> tuple[int, int] | None:
    """The tokens estimated and reported of the newest context of the path, while the plan that made it stands."""
    told = _newest_report(state, model)
    estimate, true = told.get("estimate", 0), reported(told.get("usage"))
    return (estimate, true) if true and estimate / _BELIEVED <= true <= estimate * _BELIEVED else None


def _cached(state: PathState, model: str) -> int:
    """The tokens that the provider's cache holds of the newest context of the path; 0 once a pass has changed it."""
    return cached(_newest_report(state, model).get("usage")) or 0


def _newest_report(state: PathState, model: str) -> dict[str, Any]:
    """What was kept with the newest answer that has a usage; nothing if its plan or its model is another now."""
    since = max((event.id for event in state.events), default=0)
    for entry, _ in reversed(state.messages):
        told = entry.payload
        if "context" in told and "usage" in told:
            return told if entry.id > since and told.get("model") == model else {}
    return {}


def _call(context: Context) -> dict[str, Any]:
    """What is kept of a call, so that its context can be made again: see :mod:`microfiche.auditing`.

    The system prompt and the tools are one text, so that the record keeps long ones once.
    """
    asked = {name: formats.common.plain(context.asked.get(name)) for name in ("system", "tools")}
    told: dict[str, Any] = {
        "context": context.digest,
        "model": context.receipt.model,
        "estimate": context.receipt.after.tokens,
        "asked": json.dumps(asked | {"format": context.receipt.format}, default=str),
    }
    if context.entry is not None:
        told["at"] = Ref(context.entry)
    return told


_UNBOUNDED = 1 << 40
_LESS = ("budget", "policy")
_AGAIN = ("budget", "max_tokens")


def _failure(error: Any, found: Refusal | None, context: Context | None) -> dict[str, Any]:
    told: dict[str, Any] = {"error": type(error).__name__, "what": str(error)[:2000]}
    if found is not None:
        told |= {"kind": found.kind, "used": found.used, "limit": found.limit, "max_tokens": found.max_tokens}
    if context is not None:
        told |= _call(context)
        asked = {name: value for name, value in context.asked.items() if value is not None}
        told["request"] = asked | {"policy": asked["policy"].to_dict()} if "policy" in asked else asked
    return told


__all__ = ["CLAIM_KINDS", "NOTHING", "PIN_KINDS", "Conversation", "Record", "Rewound"]
