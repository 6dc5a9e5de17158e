"""Lists in, contexts out: identity, refusals, budgets, receipts, for every wire."""

from __future__ import annotations

import copy
import dataclasses
import json
import socket
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from builders import Story, code, png, prose, rounds
from judged import accepted
from microfiche import formats, models
from microfiche.ladder.elide import Elision
from microfiche.ladder.images import Dropped
from microfiche.ladder.newest import Shortened
from microfiche.messages import Image, Text, ToolResult
from microfiche.pages import guide

OPUS = "claude-opus-5"
OWN_MODEL = {
    "anthropic": OPUS,
    "openai_chat": "gpt-5.6-sol",
    "openai_responses": "gpt-5.6-sol",
    "gemini": "gemini-3.6-flash",
}
SESSIONS = sorted((Path(__file__).parent / "data" / "sessions").glob("*.*"))


def sound(wire: str) -> list[Any]:
    """A history with a bit of everything that every provider takes as it is."""
    story = Story().user("Look at this.", png(30, 20))
    story.uses(("read_file", {"path": "a.py"}, code(1, 900)), text="I read.", thinking="first")
    story.uses(("run", {"command": "make"}, "TypeError: no", True), ("shot", {}, ("seen", png(40, 30))), thinking="x")
    story.user("And now?")
    return story.native(wire)


# ---------------------------------------------------------------- identity


@pytest.mark.parametrize("wire", builders.WIRES)
@pytest.mark.parametrize("model", [*OWN_MODEL.values(), "nobody-knows-1"])
def test_under_budget_the_very_same_messages_come_back(wire: str, model: str) -> None:
    """Kind: far below every limit, results at the end were deleted without a word."""
    messages = sound(wire)
    before = copy.deepcopy(messages)
    fit = mf.compact(messages, model=model, budget=100_000, format=wire)
    assert fit.messages is messages
    assert messages == before
    assert fit.request[formats.list_key(wire)] == messages
    assert not fit.plan and not fit.pages and fit.receipt.reason == "under_budget"
    assert not fit.receipt.rungs or [rung.rung for rung in fit.receipt.rungs] == ["write"]


@pytest.mark.parametrize("wire", builders.WIRES)
def test_a_body_comes_back_with_its_own_fields(wire: str) -> None:
    key = formats.list_key(wire)
    tools = formats.tools.stubs(["read_file", "run", "shot"], wire)[0]
    body = {key: sound(wire), "tools": tools, "model": "mine", "metadata": {"user": "u1"}}
    fit = mf.compact(body, model=OWN_MODEL[wire], budget=100_000, format=wire)
    assert fit.messages is body[key]
    assert {name: fit.request[name] for name in body} == body
    again = mf.compact(fit.request, model=OWN_MODEL[wire], budget=100_000, format=wire)
    assert again.request == fit.request


@pytest.mark.parametrize("wire", builders.WIRES)
def test_the_input_is_never_changed(wire: str) -> None:
    body = {formats.list_key(wire): rounds(30, 3_000).native(wire)}
    before = copy.deepcopy(body)
    fit = mf.compact(body, model=OWN_MODEL[wire], budget=20_000, format=wire)
    assert fit.plan.archive is not None
    fit.messages.clear()
    assert body == before


def test_lists_that_fit_several_wires_stay_one_of_them() -> None:
    messages = [{"role": "user", "content": prose(1, 50)}, {"role": "assistant", "content": prose(2, 50)}] * 60
    for model in (*OWN_MODEL.values(), "nobody-knows-1"):
        fit = mf.compact(messages[:-1], model=model, budget=3_000)
        assert fit.tokens <= 3_000
        assert fit.messages[0] == messages[0]


# ---------------------------------------------------------------- our own output


PLACEHOLDER = Elision("superseded", 9).placeholder(ToolResult("c", (Text("y" * 900),), name="read"), 2, True)
GUIDE = guide.guide((9, 16), 174, 49, True)


@pytest.mark.parametrize("wire", builders.WIRES)
def test_a_context_of_ours_is_refused(wire: str) -> None:
    messages = rounds(30, 3_000).native(wire)
    fit = mf.compact(messages, model=OWN_MODEL[wire], budget=20_000, format=wire)
    with pytest.raises(mf.OwnOutput) as caught:
        mf.compact(fit.messages, model=OWN_MODEL[wire], budget=20_000, format=wire)
    assert "original messages and the plan" in str(caught.value)
    assert caught.value.where.startswith("turn ")


@pytest.mark.parametrize("wire", builders.WIRES)
def test_each_thing_of_ours_alone_is_refused(wire: str) -> None:
    page = mf.render("words " * 300, model=OPUS)[0].png
    stories = {
        "page": Story().user("see", page),
        "guide": Story().user("go").user(GUIDE),
        "placeholder": Story().user("go").uses(("read", {}, PLACEHOLDER)),
    }
    for what, story in stories.items():
        with pytest.raises(mf.OwnOutput, match=f"a {what} of ours"):
            mf.compact(story.native(wire), model=OPUS, budget=100_000, format=wire)


@pytest.mark.parametrize("wire", builders.WIRES)
def test_a_tool_that_prints_a_line_of_ours_ends_nothing(wire: str) -> None:
    """Kind: a tool that gives back what a pass made, a file or on purpose, and a session that is refused for ever."""
    elsewhere = PLACEHOLDER.replace("recall of turn 2", "recall of turn 9")
    pointer = next(iter(Shortened(3, 4).parts("x" * 90, 7, True, ())))
    marker = Dropped("old").marker(Image(b"x", "image/png", 3, 4), 7, True)
    assert isinstance(pointer, Text)
    for text in (elsewhere, pointer.text, marker, GUIDE, guide.exact(3, ["src/a.py"])):
        story = Story().user("go").uses(("show", {}, text)).says("I saw it.").user("And now?")
        fit = mf.compact(story.native(wire), model=OPUS, budget=100_000, format=wire)
        assert fit.receipt.reason == "under_budget"


@pytest.mark.parametrize("wire", builders.WIRES)
def test_a_model_that_says_again_what_it_was_shown_ends_nothing(wire: str) -> None:
    for text in (GUIDE, guide.exact(3, ["src/a.py"]), Dropped("old").marker(Image(b"x", "image/png", 3, 4), 7, True)):
        story = Story().user("What do you see?").says(text).user("Thank you.")
        fit = mf.compact(story.native(wire), model=OPUS, budget=100_000, format=wire)
        assert fit.receipt.reason == "under_budget"


def test_what_is_ours_is_known_behind_a_message_put_in_front() -> None:
    """A conversation that began with the assistant: what is put in front moves all turns by one."""
    story = Story().says("How may I help?").user("Read.").read("a.py", code(1, 3_000)).read("a.py", code(1, 3_000))
    for at in range(12):
        story.read(f"{at}.py", code(at, 3_000))
    policy = mf.Policy(rungs=("elide",))
    messages = story.native("anthropic")
    fit = mf.compact(messages, model=OPUS, budget=mf.count(messages, model=OPUS) - 500, policy=policy)
    assert fit.plan.elided and fit.messages[0]["content"] != messages[0]["content"]
    with pytest.raises(mf.OwnOutput, match="a placeholder of ours"):
        mf.compact(fit.messages, model=OPUS, budget=100_000)


@pytest.mark.parametrize("wire", builders.WIRES)
def test_a_page_that_a_tool_showed_is_a_picture_like_any_other(wire: str) -> None:
    """Kind: a session in which the agent looked at a file of ours, refused for ever."""
    page = mf.render("words " * 300, model=OPUS)[0].png
    story = Story().user("look at out/page-001.png").uses(("view", {"path": "out/page-001.png"}, ("seen", page)))
    fit = mf.compact(story.says("It is a page.").native(wire), model=OWN_MODEL[wire], budget=100_000, format=wire)
    assert fit.receipt.reason == "under_budget" and fit.receipt.after.images == 1
    # What a pass makes of such a session is its own output all the same.
    for at in range(30):
        story.read(f"{at}.py", code(at, 3_000))
    made = mf.compact(story.native(wire), model=OWN_MODEL[wire], budget=20_000, format=wire)
    with pytest.raises(mf.OwnOutput):
        mf.compact(made.messages, model=OWN_MODEL[wire], budget=20_000, format=wire)


@pytest.mark.parametrize("wire", builders.WIRES)
def test_a_shortened_result_of_ours_is_refused_in_every_wire(wire: str) -> None:
    """Its pages stand where pictures of a tool stand; what stands beside them tells."""
    story = Story().user("go").read("big.py", code(1, 400_000))
    made = mf.compact(story.native(wire), model=OWN_MODEL[wire], budget=20_000, format=wire)
    assert made.receipt.after.images
    with pytest.raises(mf.OwnOutput, match=r"a (guide|pointer) of ours"):
        mf.compact(made.messages, model=OWN_MODEL[wire], budget=20_000, format=wire)


@pytest.mark.parametrize("vision", ["yes", 1, 0, "", []])
def test_vision_is_true_or_false(vision: Any) -> None:
    with pytest.raises(mf.BadInput, match="neither true nor false"):
        mf.compact(Story().user("go").native("anthropic"), model=OPUS, vision=vision)


@pytest.mark.parametrize("source", ["", "  \n", "\0\0", '{"schema_version": "ATIF-v1.5", "agent": {}, "steps": 3}'])
def test_what_cannot_be_read_names_a_cure(source: str) -> None:
    with pytest.raises(mf.BadInput) as caught:
        formats.read(source, "atif" if "ATIF" in source else None)
    assert caught.value.cure


@pytest.mark.parametrize("wire", builders.WIRES)
def test_words_that_quote_ours_pass(wire: str) -> None:
    story = Story().user(f"What does this mean: {GUIDE}")
    story.uses(("grep", {}, f"plan.json:3:{PLACEHOLDER}"), ("read", {}, f"{PLACEHOLDER}{code(1, 2_000)}"))
    story.uses(("cat", {}, f"{GUIDE}\nand more"))
    story.user("The conversation goes on with turn 3.")
    fit = mf.compact(story.native(wire), model=OPUS, budget=100_000, format=wire)
    assert fit.receipt.reason == "under_budget"


# ---------------------------------------------------------------- what cannot fit


def test_the_error_names_the_part_and_by_how_much() -> None:
    long = prose(1, 20_000)
    cases: list[tuple[str, dict[str, Any]]] = [
        ("the system prompt alone: ", {"messages": rounds(5).native("anthropic"), "system": long}),
        (
            "the tools alone: ",
            {
                "messages": rounds(5).native("anthropic"),
                "tools": [{"name": "t", "description": long, "input_schema": {"type": "object"}}],
            },
        ),
        ("the first user message alone: ", {"messages": Story().user(long).says("ok").user("x").native("anthropic")}),
        ("the newest turn alone: ", {"messages": Story().user("go").user(long).native("anthropic")}),
    ]
    for text, given in cases:
        messages = given.pop("messages")
        with pytest.raises(mf.CannotFit, match=text) as caught:
            mf.compact(messages, model=OPUS, budget=30_000, **given)
        assert "of 30,000 tokens, " in str(caught.value) and "too many; raise the budget" in str(caught.value)


def test_what_fits_alone_but_not_together_is_named_part_by_part() -> None:
    messages = Story().user(prose(1, 1_000)).says("a").says("b").user(prose(2, 1_000)).native("anthropic")
    with pytest.raises(mf.CannotFit, match=r"what never changes: .* first user message .*, the newest turn "):
        mf.compact(messages, model=OPUS, budget=5_000)


def test_rungs_that_are_off_are_blamed() -> None:
    messages = rounds(30, 3_000).native("anthropic")
    with pytest.raises(mf.CannotFit, match=r"the rungs allowed \(elide\) leave .* of 20,000 tokens"):
        mf.compact(messages, model=OPUS, budget=20_000, policy=mf.Policy(rungs=("elide",)))


def test_the_smallest_budget_that_is_said_to_do_does() -> None:
    """Just above the sum of what never changes something fits, and just below nothing does."""
    messages = rounds(12, 2_000).native("anthropic")
    low, high = 1, 20_000
    while high - low > 1:
        middle = (low + high) // 2
        try:
            mf.compact(messages, model=OPUS, budget=middle)
        except mf.CannotFit:
            low = middle
        else:
            high = middle
    fit = mf.compact(messages, model=OPUS, budget=high)
    never = mf.count([messages[0], *messages[-2:]], model=OPUS)
    assert never <= high <= never + 200
    assert fit.tokens <= high


@pytest.mark.parametrize(
    "options",
    [
        {"model": "nobody-knows-1"},
        {"model": OPUS, "budget": 0},
        {"model": OPUS, "budget": -5},
        {"model": OPUS, "max_tokens": 10**9},
        {"model": OPUS, "fidelity": "sharp"},
        {"model": OPUS, "format": "morse"},
        {"model": OPUS, "system": 7},
    ],
)
def test_words_and_numbers_out_of_range_are_bad_input(options: dict[str, Any]) -> None:
    with pytest.raises(mf.BadInput) as caught:
        mf.compact(sound("anthropic"), **options)
    assert caught.value.cure


@pytest.mark.parametrize("name", [each.name for each in dataclasses.fields(mf.Policy)])
def test_a_policy_is_bad_input_or_does(name: str) -> None:
    """Whatever stands in a field: an error that names it when the policy is made, or a context that can be sent."""
    messages = (
        Story(rounds(12, 1_500).events).user("This.", png(300, 300)).says("Seen.").user("Go on.").native("anthropic")
    )
    odd: list[Any] = [-1, 0, 1, 0.5, 2.5, 10**30, 1e308, float("inf"), float("nan"), True, None, "", "x"]
    odd += [b"x", "elide", "cost", [], ["elide"], [1], (), (1,), {}, {1}, object(), len]
    made = 0
    for value in odd:
        try:
            policy = mf.Policy(**{name: value})
        except mf.BadInput as error:
            assert name in str(error)
            continue
        made += 1
        try:
            fit = mf.compact(messages, model=OPUS, budget=9_000, policy=policy)
        except mf.CannotFit:
            continue
        except mf.BadInput as error:
            assert name in ("rules", "font")
            assert name in str(error)
            continue
        accepted(fit.request)
    assert 0 < made < len(odd)


@pytest.mark.parametrize("wrong", [{"rungs": ("elid",)}, {"screenshots": -1}, {"tail_share": float("nan")}])
def test_a_policy_out_of_range_is_bad_input(wrong: dict[str, Any]) -> None:
    with pytest.raises(mf.BadInput, match="policy"):
        mf.Policy(**wrong)


def test_a_price_that_is_no_matter_vetoes_no_page() -> None:
    rows = [(models.cost_ratio(m, models.cell_for(m)), m.id) for m in models.catalogue() if m.vision]
    ratio, dear = min(row for row in rows if row[0] > 0.85)
    assert ratio < 1.2
    messages = rounds(40, 3_000).native("openai_chat")
    assert not mf.compact(messages, model=dear, budget=25_000).pages
    assert mf.compact(messages, model=dear, budget=25_000, policy=mf.Policy(pays=100)).pages
    dearest = max(rows)[1]
    fit = mf.compact(messages, model=dearest, budget=25_000, policy=mf.Policy(pays=100))
    assert {rung.rung: rung.reason for rung in fit.receipt.rungs}["snapshot"] == "would_grow"
    assert not fit.pages


# ---------------------------------------------------------------- budgets


def test_without_a_budget_it_is_a_share_of_window_less_output() -> None:
    messages = sound("anthropic")
    model = models.find(OPUS)
    window = model.context_window
    assert window is not None
    assert mf.compact(messages, model=OPUS).receipt.budget.tokens == int(0.8 * (window - 32_000))
    assert mf.compact(messages, model=OPUS, max_tokens=50_000).receipt.budget.tokens == int(0.8 * (window - 50_000))
    body = {"messages": messages, "max_tokens": 64_000}
    assert mf.compact(body, model=OPUS).receipt.budget.tokens == int(0.8 * (window - 64_000))
    contents = {"contents": sound("gemini"), "generationConfig": {"maxOutputTokens": 1_000}}
    gemini = mf.compact(contents, model="gemini-3.6-flash")
    assert gemini.request["generationConfig"]["maxOutputTokens"] == 1_000
    assert gemini.receipt.budget.tokens == int(0.8 * (1_048_576 - 1_000))


@pytest.mark.parametrize("budget", range(9_000, 30_000, 1_777))
@pytest.mark.parametrize("wire", builders.WIRES)
def test_the_request_as_written_is_within_the_budget(wire: str, budget: int) -> None:
    story = rounds(30, 2_000).says("done")
    fit = mf.compact(story.native(wire), model=OPUS, budget=budget, system="Be brief. " * 50, format=wire)
    assert fit.tokens == mf.count(formats.read(fit.request, wire), model=OPUS) <= budget


def test_system_and_tools_count() -> None:
    messages = rounds(30, 2_000).native("anthropic")
    tools = [{"name": "read_file", "description": prose(3, 900), "input_schema": {"type": "object"}}]
    total = mf.count(messages, model=OPUS)
    more = mf.count(messages, model=OPUS, system="x" * 2_000, tools=tools)
    assert more > total + 1_000
    assert mf.compact(messages, model=OPUS, budget=total + 100).receipt.reason == "under_budget"
    fit = mf.compact(messages, model=OPUS, budget=total + 100, system="x" * 2_000, tools=tools)
    assert fit.plan and fit.receipt.before.tokens == more
    assert fit.request["tools"] == tools and fit.request["system"] == "x" * 2_000


# ---------------------------------------------------------------- one pass, free of charge


def test_rungs_run_in_order_and_stop_at_the_first_that_fits() -> None:
    story = Story().user("go")
    for at in range(30):
        story.uses(("read_file", {"path": f"{at % 20}.py"}, code(at % 20, 3_000)))
        story.uses(("shot", {}, png(900, 600 + at)))
    messages = story.native("anthropic")
    total = mf.count(messages, model=OPUS)
    seen = []
    for share in (0.9, 0.65, 0.4, 0.15):
        fit = mf.compact(messages, model=OPUS, budget=int(total * share), policy=mf.Policy(target=1))
        seen.append([rung.rung for rung in fit.receipt.rungs if rung.rung not in ("carry", "write")])
    assert seen == [
        ["elide"],
        ["elide", "images"],
        ["elide", "images", "snapshot"],
        ["elide", "images", "snapshot", "omit"],
    ]


def test_no_socket_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    assert mf.compact(rounds(30, 3_000).native("anthropic"), model=OPUS, budget=20_000).pages


def test_the_words_of_user_and_assistant_survive_the_free_rungs() -> None:
    story = Story()
    story.user("go")
    for at in range(30):
        story.uses(("read_file", {"path": "a.py"}, code(at, 2_000)), text=f"said {at}").user(f"asked {at}")
    messages = story.native("anthropic")
    policy = mf.Policy(rungs=("elide", "images"))
    fit = mf.compact(messages, model=OPUS, budget=mf.count(messages, model=OPUS) // 2, policy=policy)

    def words(listed: list[Any]) -> list[str]:
        blocks = [b for m in listed for b in (m["content"] if isinstance(m["content"], list) else [m["content"]])]
        return [b if isinstance(b, str) else b["text"] for b in blocks if isinstance(b, str) or b["type"] == "text"]

    assert fit.plan.elided
    assert words(fit.messages) == words(messages)


def test_the_same_call_gives_the_same_bytes() -> None:
    messages = rounds(30, 3_000).native("anthropic")
    one, two = (mf.compact(messages, model=OPUS, budget=20_000) for _ in range(2))
    assert json.dumps(one.request) == json.dumps(two.request)
    assert (one.plan, one.digest) == (two.plan, two.digest)


def test_the_digest_is_that_of_the_content() -> None:
    messages = rounds(30, 3_000).native("anthropic")
    digests = {mf.compact(messages, model=OPUS, budget=budget).digest for budget in (20_000, 21_000, 10**6)}
    changed = copy.deepcopy(messages)
    changed[-1]["content"][0]["content"] += "."
    digests.add(mf.compact(changed, model=OPUS, budget=20_000).digest)
    digests.add(mf.compact(messages, model=OPUS, budget=20_000, system="s").digest)
    assert len(digests) >= 4


# ---------------------------------------------------------------- recall and receipt


@pytest.mark.parametrize("wire", builders.WIRES)
def test_recall_returns_the_original(wire: str) -> None:
    story = rounds(25, 3_000).user("picture", png(50, 40))
    messages = story.native(wire)
    fit = mf.compact(messages, model=OWN_MODEL[wire], budget=20_000, format=wire)
    found = [message for turn in range(1, 28) for message in fit.recall(turn)]
    assert found == messages
    for turn in (0, 28, -1):
        with pytest.raises(KeyError, match="the turns are 1 to 27"):
            fit.recall(turn)


def test_the_receipt_has_money_where_it_is_known() -> None:
    messages = rounds(30, 3_000).native("anthropic")
    known = mf.compact(messages, model=OPUS, budget=20_000).receipt
    assert known.before.money is not None and known.after.money is not None
    assert known.before.money / known.before.tokens == pytest.approx(known.after.money / known.after.tokens)
    assert mf.compact(messages, model="nobody-knows-1", budget=20_000).receipt.before.money is None
    assert json.loads(known.to_json())["version"] == 1


# ---------------------------------------------------------------- switches and wires


@pytest.mark.parametrize("wire", builders.WIRES)
def test_switches_that_protect_pages_are_set(wire: str) -> None:
    fit = mf.compact(rounds(40, 3_000).native(wire), model=OWN_MODEL[wire], budget=25_000, format=wire)
    assert fit.pages
    text = json.dumps(fit.request)
    expected = {
        "anthropic": ('"oversized_image": "error"', len(fit.pages)),
        "openai_chat": ('"detail": "original"', len(fit.pages)),
        "openai_responses": ('"detail": "original"', len(fit.pages)),
        "gemini": ("MEDIA_RESOLUTION_HIGH", 1),
    }[wire]
    assert text.count(expected[0]) == expected[1]
    if wire == "openai_responses":
        assert fit.request["truncation"] == "disabled"


@pytest.mark.parametrize("source", builders.WIRES)
@pytest.mark.parametrize("target", builders.WIRES)
def test_any_wire_to_any_other(source: str, target: str) -> None:
    history = formats.read(builders.random_story(7).native(source), source)
    total = mf.count(history, model=OPUS)
    for share in (2.0, 0.5, 0.25):
        fit = mf.compact(history, model=OPUS, budget=int(total * share), format=target)
        assert mf.validate(fit.request, target) == []
        assert fit.tokens <= total * share
        again = mf.compact(history, model=OPUS, budget=int(total * share), plan=fit.plan, format=target)
        assert (again.plan, again.request) == (fit.plan, fit.request)


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.name)
@pytest.mark.parametrize("model", [*sorted(set(OWN_MODEL.values())), "claude-haiku-4-5", "nobody-knows-1"])
def test_sessions_compact_for_every_provider(path: Path, model: str) -> None:
    history = formats.read(path.read_bytes(), where=path.name)
    total = mf.count(history, model=model, vision=True)
    fit = mf.compact(history, model=model, budget=int(total * 0.4), vision=True)
    assert fit.plan
    assert fit.tokens <= total * 0.4
    assert fit.receipt.violations == ()
    assert mf.validate(fit.request, fit.receipt.format) == []
    segments = mf.read_back([page.png for page in fit.pages], marks=True)
    assert "".join(s for s in segments if isinstance(s, str)) == "".join(page.text for page in fit.pages)


def test_private_copies_of_an_exporter_never_leave() -> None:
    steps = [{"step_id": 1, "source": "user", "message": "go"}]
    for at in range(2, 40):
        call = {"tool_call_id": f"c{at}", "function_name": "bash", "arguments": {"command": f"make {at}"}}
        said = f"line {at} {code(at, 1_500)}"
        content = f'{said}\n\n[stdout]\n{said}\n\n[metadata] {{"rows": {at}, "sesame": 1}}'
        observed = {"source_call_id": f"c{at}", "content": content}
        steps.append(
            {
                "step_id": at,
                "source": "agent",
                "message": "on",
                "tool_calls": [call],
                "observation": {"results": [observed]},
                "extra": {"sesame": 2},
            }
        )
    document = {
        "schema_version": "ATIF-v1.4",
        "session_id": "s",
        "agent": {"name": "a", "version": "1"},
        "steps": steps,
    }
    for budget in (10**6, 20_000):
        fit = mf.compact(json.dumps(document), model=OPUS, budget=budget)
        assert "sesame" not in json.dumps(fit.request)
        assert "sesame" not in "".join(page.text for page in fit.pages)


@pytest.mark.parametrize("name", ["budget", "max_tokens"])
@pytest.mark.parametrize("value", ["20k", float("nan"), True, 1.5, 0, -1])
def test_an_amount_is_a_whole_number_of_tokens(name: str, value: Any) -> None:
    with pytest.raises(mf.BadInput, match=name):
        mf.compact([{"role": "user", "content": "hi"}], model="claude-opus-5", **{name: value})


@pytest.mark.parametrize("model", [5, "", None])
def test_a_model_has_a_name(model: Any) -> None:
    with pytest.raises(mf.BadInput, match="model"):
        mf.compact([{"role": "user", "content": "hi"}], model=model)


@pytest.mark.parametrize(
    ("name", "value"),
    [("plan", {"version": 1}), ("plan", "{}"), ("policy", 3), ("policy", {}), ("tools", 3), ("tools", {"name": "ls"})],
)
def test_a_plan_a_policy_and_tools_are_of_their_kind(name: str, value: Any) -> None:
    with pytest.raises(mf.BadInput, match=f"^{name}: "):
        mf.compact([{"role": "user", "content": "hi"}], model="claude-opus-5", **{name: value})


@pytest.mark.parametrize("config", ["abc", [1], None])
def test_a_config_that_is_no_object_does_not_crash(config: Any) -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": config}
    assert mf.compact(body, model="gemini-3.6-flash", budget=1000).request["contents"] == body["contents"]
