"""Slash commands as a user types them and a runtime forwards: ``/compact``, ``/shake``, ``/context``, ``/tree``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Unpack

from microfiche import models
from microfiche.conversation import SHAKES, Conversation, Options
from microfiche.errors import BadInput, MicroficheError, NothingToCompact
from microfiche.fit import Context
from microfiche.ladder.budget import RUNGS, Policy, budget_for
from microfiche.ladder.summarize import Summarizer, SummaryRequest
from microfiche.views.tree import tree
from microfiche.views.window import composition

COMMANDS = {
    "/compact": "/compact [fit|cost|FOCUS]: make the context smaller now; FOCUS is what a summary has to keep",
    "/shake": f"/shake [{'|'.join(SHAKES)}]: only what costs nothing: old results, old screenshots, old reasoning",
    "/context": "/context: what fills the window",
    "/tree": "/tree [ENTRY]: the branches of the conversation; with an entry, go on from there",
}
"""The commands, each with the line that explains it."""

LONGEST_FOCUS = 500
"""Characters of a focus."""

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Said:
    """What a command answers: a text to show, and what came of it.

    ``value`` is the :class:`~microfiche.fit.Context` of a pass, the numbers of ``/context``, the data of ``/tree`` or
    the entry of a move; of a command that was not ``done`` the error that says why.
    """

    text: str
    value: Any
    done: bool = True


def command(chat: Conversation, text: str, *, model: str, **options: Unpack[Options]) -> Said:
    """Do what a slash command says, and tell it.

    ``text`` is the whole line that the user typed; ``model`` and ``options`` are those of the next
    :meth:`~microfiche.conversation.Conversation.context`. Whatever cannot be done is an answer too, with ``done``
    false: an unknown command, words that it does not take, nothing to compact, another pass under way.
    """
    name, rest = (*(text.split(None, 1) if isinstance(text, str) else ()), "", "")[:2]
    run = _RUN.get(name.lower())
    try:
        if run is None:
            told = f"no command {name[:_SHOWN]!r}" if name else "no command"
            raise BadInput(told, "", "there are\n" + "\n".join(COMMANDS.values()))
        return run(chat, " ".join(rest.split()), model, options)
    except NothingToCompact as error:
        return _nothing(error)
    except MicroficheError as error:
        return Said(str(error), error, False)


def _compact(chat: Conversation, words: str, model: str, options: Options) -> Said:
    if words.lower() == "cost":
        options["policy"] = replace(options.get("policy") or Policy(), goal="cost")
        before = chat.state().plan
        made = chat.context(model=model, **options)
        if not made.plan or made.plan == before:
            raise NothingToCompact(
                "nothing was compacted", chat.name, "a pass would not pay for itself", "does_not_pay"
            )
        return Said(_receipt(made), made)
    if not words or words.lower() == "fit":
        made = chat.compact(model=model, **options)
        return Said(_receipt(made), made)
    if len(words) > LONGEST_FOCUS:
        raise BadInput(f"a focus of {len(words)} characters", "/compact", f"say it in {LONGEST_FOCUS}")
    summarize = options.get("summarize")
    if summarize is not None:
        options["summarize"] = _focused(summarize, words)
    try:
        made = chat.compact(model=model, **options)
    except NothingToCompact as error:
        said = _nothing(error)
        return replace(said, text=f"{said.text}\n{_unused(options)}")
    reasons = [rung.reason for rung in made.receipt.rungs if rung.rung == "summary"]
    if "" in reasons:
        return Said(_receipt(made), made)
    return Said(f"{_receipt(made)}\n{_unused(options, *reasons[-1:])}", made)


def _nothing(error: NothingToCompact) -> Said:
    return Said(f"Nothing was compacted ({error.reason.replace('_', ' ')}): {error.cure}.", error, False)


def _unused(options: Options, reason: str = "") -> str:
    """Why a focus had nothing to be the focus of; ``reason``: what the pass said of its summary."""
    if options.get("summarize") is None:
        why = "it is for a summary, and there is no summariser"
    elif "summary" not in (options.get("policy") or Policy()).rungs:
        why = "it is for a summary, and the policy allows no summary"
    else:
        why = _WITHOUT.get(
            reason.partition(":")[0], "a summary is written only where the context does not fit its budget without one"
        )
    return f"The focus was not used: {why}."


_WITHOUT = {
    "summary_failed": "the summary failed",
    "no_room": "there was no room for a summary, or nothing old enough for one",
    "would_grow": "a summary would not have made the context smaller",
}


def _failure(made: Context) -> str:
    """Why the summary of a pass failed, empty if it did not."""
    reasons = (rung.reason for rung in made.receipt.rungs if rung.rung == "summary")
    return next((reason.partition(": ")[2] for reason in reasons if reason.startswith("summary_failed")), "")


def _focused(summarize: Summarizer, focus: str) -> Summarizer:
    def ask(request: SummaryRequest) -> Any:
        wish = f"\n\nAbove all keep what concerns this, in the user's words: {focus}"
        return summarize(replace(request, prompt=request.prompt + wish))

    return ask


def _shake(chat: Conversation, words: str, model: str, options: Options) -> Said:
    made = chat.shake(words.lower() or None, model=model, **options)
    return Said(_receipt(made), made)


def _receipt(made: Context) -> str:
    before, after = made.receipt.before, made.receipt.after
    lines = [f"{before.tokens:,} tokens became {after.tokens:,}."]
    did = [rung.rung for rung in made.receipt.rungs if not rung.reason and rung.rung in RUNGS]
    if did:
        lines.append(f"Done by: {', '.join(did)}.")
    if failure := _failure(made):
        lines.append(f"The summary failed ({_line(failure)}): nothing of it is used.")
    if made.pages:
        lines.append(f"Pages: {len(made.pages)}.")
    if before.images != after.images:
        lines.append(f"Images: {before.images} became {after.images}, pages included.")
    if gone := len(made.receipt.omitted_turns):
        lines.append(f"Turns left out, still on record: {gone}.")
    return "\n".join(lines)


def _context(chat: Conversation, words: str, model: str, options: Options) -> Said:
    if words:
        raise BadInput(f"{words[:_SHOWN]!r} is nothing that it takes", "/context", "say /context alone")
    made = chat.preview(model=model, **options)
    state = chat.state()
    spent = composition(made, state.history(made.receipt.format).pins)
    policy = options.get("policy") or Policy()
    found = models.find(model, options.get("vision"))
    budget = made.asked["budget"] or budget_for(found, policy, None, options.get("max_tokens")).tokens
    due = made.plan != state.plan and bool(made.plan or state.plan)
    value = {"budget": budget, "tokens": made.tokens, "spent": spent, "free": budget - made.tokens, "pass_due": due}
    rows = [(kind, number) for kind, number in spent.items() if number] + [("free", budget - made.tokens)]
    lines = [f"{kind:<10}{number:>12,}{number / budget:>8.1%}" for kind, number in [*rows, ("budget", budget)]]
    if due:
        lines.append("Over the threshold: the next call makes a pass first. This is the context after it.")
    return Said("\n".join(lines), value)


def _tree(chat: Conversation, words: str, model: str, options: Options) -> Said:
    if words:
        if not (words.isascii() and words.isdecimal() and len(words) < 19):
            raise BadInput(f"{words[:_SHOWN]!r} is no number of an entry", "/tree", "say one that /tree lists")
        moved = chat.branch(int(words))
        return Said(f"The conversation goes on from entry {words}. What was said after it stays in the tree.", moved)
    data = tree(chat, list(chat.record.entries(kind="fork")))
    where = "the beginning" if chat.tip is None else f"entry {chat.tip}"
    lines = [f"{chat.name}: the tip is {where}"]
    depth: dict[int | None, int] = {None: 0}
    for each in data["stretches"]:
        begin, end = each["entries"]
        # What follows an entry stands one step in from the stretch that ends with it.
        depth[end] = depth.get(each["parent"], 0) + 1
        said = " -> ".join(f'"{_line(text)}"' for text in (each["asked"], each["answered"]) if text)
        tip = "  <- tip" if each["tip"] else ""
        indent = "  " * min(depth[end] - 1, 20)
        lines.append(f"{indent}* entries {begin}-{end}  {said}{tip}")
        lines += [f"{indent}  entry {event['entry']}: {_line(event['what'])}" for event in each["events"]]
    lines += [f"checkpoint {_line(name)}: entry {entry}" for name, entry in data["checkpoints"].items()]
    lines += [f"forked as {_line(each['conversation'])} at entry {each['entry']}" for each in data["forks"]]
    return Said("\n".join(lines), data)


def _line(text: str) -> str:
    """The beginning of a text as one line that no terminal obeys."""
    line = " ".join(text[: 4 * _SHOWN].split())[:_SHOWN]
    return "".join(each if each.isprintable() else "�" for each in line)


_RUN: dict[str, Callable[[Conversation, str, str, Options], Said]] = {
    "/compact": _compact,
    "/shake": _shake,
    "/context": _context,
    "/tree": _tree,
}
