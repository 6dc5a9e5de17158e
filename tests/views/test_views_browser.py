"""The view in a real browser: Debian's chromium, driven by Playwright.

Skipped where either is missing; ``.ci/run`` installs both where it may. No test waits for time: each waits for
what it wants to see.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import builders
import microfiche as mf
import pytest
from microfiche import formats
from microfiche.conversation import Conversation, Record
from microfiche.transfer import import_history
from microfiche.views.browse import browse
from microfiche.views.html import view
from microfiche.views.projections import project
from microfiche.views.tree import tree

playwright = pytest.importorskip("playwright.sync_api", reason="NO BROWSER TESTS: pip install playwright")
expect = playwright.expect
expect.set_options(timeout=30_000)

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "0.1.mf"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("NO BROWSER TESTS: no chromium here; apt-get install chromium")
    with playwright.sync_playwright() as driver:
        # A sandbox inside a container needs rights that tests have not; everything loaded is made here.
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Record]:
    """A life with every kind of event, two branches, claims and a fork."""
    folder = tmp_path_factory.mktemp("record")
    with Record.open(shutil.copy(GOLDEN, folder / "work.mf"), read_only=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def address(record: Record) -> str:
    return written(record)


def written(record: Record) -> str:
    page = record.path.with_suffix(".html")
    page.write_text(view(browse(record, [each.name for each in record.conversations()])), "utf-8")
    return page.as_uri()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    yield from opened(browser, address)


def opened(browser: Any, address: str, **how: Any) -> Iterator[Any]:
    """A page of its own that must stay without errors, refusals by its policy, dialogs and requests."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, **how)
    try:
        one = context.new_page()
        wrong: list[str] = []
        one.on("pageerror", lambda error: wrong.append(str(error)))
        one.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        one.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        one.on(
            "request", lambda request: wrong.append(request.url) if request.url[:5] not in ("file:", "data:") else None
        )
        go(one, address)
        yield one
        assert wrong == []
    finally:
        context.close()


def go(page: Any, address: str) -> None:
    page.goto(address)
    page.locator("body[data-ready]").wait_for()


def ask(page: Any, words: str) -> None:
    """Type into the search and take the first hit, with the keyboard alone."""
    page.locator("#search").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type(words)
    page.keyboard.press("Enter")
    expect(page.locator("#results li button").first).to_be_focused()
    page.keyboard.press("Enter")


def chat_of(record: Record) -> Conversation:
    return record.conversation("golden")


def left_leaf(chat: Conversation) -> Any:
    """The newest message on the branch that was left."""
    on_path = {entry.id for entry in chat.thread.path()}
    return max(
        (e for e in chat.record.entries(conversation=chat.name) if e.message is not None and e.id not in on_path),
        key=lambda entry: entry.id,
    )


def newest_pass(record: Record) -> Any:
    """The newest pass in force that drew pages."""
    return next(each for each in reversed(chat_of(record).state().compactions) if each.payload["pages"]["then"])


def missing(page: Any, ids: list[int]) -> dict[str, list[list[Any]]]:
    """What the details of each entry list as not seen word for word: turn, entry, form, event; sorted as text."""
    told: dict[str, list[list[Any]]] = page.evaluate(
        """async (calls) => {
          const told = {};
          for (const id of calls) {
            const there = new Promise((done) => addEventListener("popstate", done, { once: true }));
            location.hash = `#e${id}`;
            await there;
            told[id] = [];
            for (const box of document.querySelectorAll("#details details.since")) {
              if (!box.open) {
                const filled = new Promise((done) => box.addEventListener("toggle", done, { once: true }));
                box.open = true;
                await filled;
              }
              for (const row of box.querySelectorAll(".parts li"))
                {
                  const { turn, entry, form } = row.dataset;
                  told[id].push([Number(turn), Number(entry), form, Number(box.dataset.since)]);
                }
            }
            told[id].sort();
          }
          return told;
        }""",
        ids,
    )
    return told


def audited(chat: Conversation, id: int) -> list[list[Any]]:
    """The same as the audit tells it."""
    told = [[each.turn, each.key.entry, each.form, each.event] for each in mf.audit(chat).not_considered(id)]
    return sorted(told, key=lambda row: ",".join(map(str, row)))


def test_every_call_shows_what_the_audit_tells(page: Any, record: Record) -> None:
    """For every call of every conversation: each part that was reduced, its form and the event, as in the audit."""
    for standing in record.conversations():
        chat = record.conversation(standing.name)
        page.locator("#conversation").select_option(label=standing.name)
        calls = [entry.id for entry in record.entries(conversation=standing.name) if "asked" in entry.payload]
        shown = missing(page, calls)
        assert shown == {str(id): audited(chat, id) for id in calls}


def test_a_session_that_compacted_itself_says_what_its_model_had_lost(browser: Any, tmp_path: Path) -> None:
    def line(uuid: str, parent: str | None, role: str, words: str, **more: Any) -> dict[str, Any]:
        message = {"role": role, "content": words} | ({"id": f"msg_{uuid}"} if role == "assistant" else {})
        return {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": role, "message": message} | more

    boundary = {"uuid": "c", "parentUuid": None, "logicalParentUuid": "b", "sessionId": "s", "type": "system"}
    told = {"subtype": "compact_boundary", "compactMetadata": {"trigger": "auto", "preTokens": 155_000}}
    lines = [
        line("a", None, "user", "Count the boats."),
        line("b", "a", "assistant", "Seven."),
        boundary | told,
        line("d", "c", "user", "Boats were counted: seven.", isCompactSummary=True),
        line("e", "d", "user", "Go on."),
        line("f", "e", "assistant", "Going on."),
    ]
    history, beside = formats.whole("\n".join(map(json.dumps, lines)), where="s.jsonl")
    with Record.open(tmp_path / "work.mf") as record:
        chat = import_history(record, history, "s", source="s.jsonl", beside=beside).conversation
        answers = [entry.id for entry, message in chat.state().messages if message.role == "assistant"]
        wanted = {str(id): audited(chat, id) for id in answers}
        (event,) = chat.state().imported
        address = written(record)
    assert {row[2] for row in wanted[str(answers[-1])]} == {"elsewhere"}
    for one in opened(browser, address):
        assert missing(one, answers) == wanted
        expect(one.locator("#thread .mark.elsewhere").first).to_contain_text(f"since entry {event.id}")
        ask(one, f"entry {event.id}")
        expect(one.locator("#details")).to_contain_text("Boats were counted: seven.")


def test_a_reviewer_answers_the_five_questions_from_the_screen(page: Any, record: Record) -> None:
    chat = chat_of(record)
    audit = mf.audit(chat)
    claim = next(e for e in record.entries(conversation=chat.name) if e.kind == "claim")
    turn = record.entry(claim.about).turn
    call = next(e for e, m in chat.state().messages if e.turn == turn and m.role == "assistant")
    ask(page, f"entry {call.id}")
    details = page.locator("#details")
    expect(details.locator("h2")).to_contain_text(f"entry {call.id}")
    # What did the call see?
    seen = audit.context_at(call)
    expect(details).to_contain_text(seen.recorded)
    expect(details).to_contain_text("proven: made again from the record")
    expect(details.locator(".thumb")).to_have_count(len(seen.shown))
    # What had it stopped considering, since when, by which event?
    gone = audit.not_considered(call)
    by_event = {event: [each for each in gone if each.event == event] for event in {each.event for each in gone}}
    expect(details.locator("details.since")).to_have_count(len(by_event))
    for event, parts in by_event.items():
        box = details.locator(f'details.since[data-since="{event}"]')
        expect(box.locator("summary")).to_contain_text(f"{len(parts)} part")
        expect(box.locator("summary")).to_contain_text(f"Since entry {event} ")
    # In the thread, the same: a mark at a part says its form and leads to the event.
    mark = page.locator("#thread .mark.page").first
    since = re.search(r"since entry (\d+)", mark.text_content())
    assert since is not None and int(since[1]) in by_event
    # What do its claims rest on?
    links = details.locator(".evidence li")
    first = details.locator("#claims ~ p").first
    expect(first).to_contain_text(claim.payload["text"])
    wanted = {(link.kind, str(link.entry)) for link in audit.evidence(claim).links}
    shown = {(row.get_attribute("data-kind"), row.get_attribute("data-entry")) for row in links.all()}
    assert wanted <= shown
    # Does the record verify?
    badge = page.locator("#verdict")
    expect(badge).to_have_text(f"Record sound · {record.head.size} entries")
    badge.click()
    expect(details).to_contain_text(record.head.root)
    mark.click()
    expect(details.locator("h2")).to_contain_text(f"entry {since[1]}")


def test_the_tree_is_walked_by_keyboard_to_a_branch_that_was_left(page: Any, record: Record) -> None:
    left = left_leaf(chat_of(record))
    page.locator("#messages").focus()
    page.keyboard.press("t")
    items = page.locator("#tree [role=treeitem]")
    expect(items.first).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(items.first).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowRight")
    expect(items.first).to_have_attribute("aria-expanded", "true")
    (last,) = [
        stretch["entries"][1]
        for stretch in tree(chat_of(record), [])["stretches"]
        if stretch["entries"][0] <= left.id <= stretch["entries"][1]
    ]
    target = page.locator(f'#tree .stretch[data-last="{last}"]')
    for _ in range(items.count()):
        if target.evaluate("node => node === document.activeElement"):
            break
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#branch")).to_contain_text("a branch that was left")
    expect(page.locator(f"#e{left.id}")).to_be_attached()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.locator("#branch")).to_contain_text("the tip")


def test_a_bar_on_a_page_leads_to_its_turn(page: Any, record: Record) -> None:
    event = next(
        e for e in reversed(chat_of(record).state().events) if e.kind == "compaction" and e.payload["pages"]["then"]
    )
    ask(page, f"entry {event.id}")
    expect(page.locator("#details")).to_contain_text("Receipt")
    before, after = (event.payload[name]["tokens"] for name in ("before", "after"))
    expect(page.locator(".receipt")).to_contain_text(f"{before:,}")
    expect(page.locator(".receipt")).to_contain_text(f"{after:,}")
    page.locator("#details .thumb").first.click()
    sheet = page.locator("#page .sheet img")
    expect(sheet).to_be_visible()
    assert sheet.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1568
    page.keyboard.press("ArrowRight")
    expect(page.locator("#page h2")).to_contain_text("Page 2")
    bar = page.locator("#page .bar").nth(3)
    turn = bar.get_attribute("data-turn")
    bar.click()
    expect(page.locator("#page")).to_be_hidden()
    expect(page.locator("article.current h3")).to_contain_text(f"Turn {turn}")
    expect(page.locator("article.current")).to_be_focused()
    expect(page.locator("article.current")).to_be_in_viewport()


def test_text_on_a_page_leads_to_the_turn_of_the_bar_before_it(page: Any, record: Record) -> None:
    event = next(
        e for e in reversed(chat_of(record).state().events) if e.kind == "compaction" and e.payload["pages"]["then"]
    )
    go(page, f"{page.url.partition('#')[0]}#e{event.id}")
    page.reload()
    page.locator("#details .thumb").first.click()
    sheet = page.locator("#page .sheet img")
    expect(sheet).to_be_visible()
    bar = page.locator("#page .bar:not([aria-hidden])").nth(2)
    where, turn = bar.bounding_box(), bar.get_attribute("data-turn")
    page.mouse.click(where["x"] + where["width"] + 3, where["y"] + where["height"] / 2)
    expect(page.locator("#page")).to_be_hidden()
    expect(page.locator("article.current h3")).to_contain_text(f"Turn {turn}")


def test_the_search_finds_words_of_every_branch(page: Any, record: Record) -> None:
    left = left_leaf(chat_of(record))
    page.locator("body").press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("NAIVE")
    expect(page.locator("#results h2")).to_contain_text("hits")
    expect(page.locator("#results")).to_contain_text("other branch")
    page.keyboard.press("Escape")
    expect(page.locator("#results")).to_be_hidden()
    page.keyboard.type(f"turn {left.turn}")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("article.current h3")).to_contain_text(f"Turn {left.turn}")


def test_a_hit_shows_the_words_as_they_stand(browser: Any, tmp_path: Path) -> None:
    said = "ﬁrst Åland, then 漢字 and 😀 e\u0301tude: the Café of ΟΔΟΣ İZMİR, once"
    with mf.Record.open(tmp_path / "work.mf") as work:
        import_history(work, formats.read(json.dumps([{"role": "user", "content": said}]).encode()), "work")
        address = written(work)
    for page in opened(browser, address):
        hit = page.locator("#results .hit")
        for asked, found in (("CAFE OF", "Café of"), ("οδος", "ΟΔΟΣ"), ("izmir", "İZMİR"), ("etude", "e\u0301tude")):
            page.locator("#search").fill(asked)
            expect(hit.locator("mark")).to_have_text(found)
        expect(hit).to_contain_text("Åland, then 漢字 and 😀")
        page.locator("#search").fill("turn 1,0")
        expect(page.locator("#results h2")).to_have_text("No hit")
        page.locator("#search").fill("turn 1")
        expect(page.locator("#results h2")).to_have_text("1 hit")


def test_two_branches_stand_side_by_side(page: Any, record: Record) -> None:
    chat = chat_of(record)
    left = left_leaf(chat)
    page.locator("#compare-go").click()
    columns = page.locator("#compare .column")
    expect(columns).to_have_count(2)
    tips = [int(column.get_attribute("data-leaf")) for column in columns.all()]
    assert tips[1] == chat.tip
    paths = [[entry.id for entry in chat.thread.path(tip)] for tip in tips]
    shared = [a for a, b in zip(*paths, strict=False) if a == b]
    expect(page.locator("#compare .shared")).to_contain_text(f"to entry {shared[-1]} ")
    for at, path in enumerate(paths):
        own = {str(id) for id in path[len(shared) :]}
        shown = {each.get_attribute("data-entry") for each in columns.nth(at).locator("article").all()}
        assert own <= shown and not shown & {str(id) for id in shared}
    assert str(left.id) in {each.get_attribute("data-entry") for each in columns.nth(0).locator("article").all()}
    page.locator("#compare .close").click()
    expect(page.locator("#thread")).to_be_visible()


def test_back_and_forward_follow_what_was_looked_at(page: Any) -> None:
    ask(page, "entry 5")
    ask(page, "entry 9")
    expect(page.locator("#details h2")).to_contain_text("entry 9")
    page.go_back()
    expect(page.locator("#details h2")).to_contain_text("entry 5")


def test_dark_and_narrow(browser: Any, address: str) -> None:
    (dark,) = [
        one.evaluate("getComputedStyle(document.body).color") for one in opened(browser, address, color_scheme="dark")
    ]
    (light,) = [
        one.evaluate("getComputedStyle(document.body).color") for one in opened(browser, address, color_scheme="light")
    ]
    assert dark != light
    for one in opened(browser, address):
        one.set_viewport_size({"width": 380, "height": 700})
        expect(one.locator("#branches")).to_be_hidden()
        one.get_by_role("button", name="Branches").click()
        expect(one.locator("#tree")).to_be_visible()
        one.locator("#tree .row").first.click()
        expect(one.locator("#messages")).to_be_visible()
        wide = one.evaluate("document.documentElement.scrollWidth")
        assert wide <= 380


PAYLOADS = (
    "<script>window.pwned = 1</script>",
    "</script><script>window.pwned = 1</script><!--",
    "<img src=x onerror='window.pwned = 1'>",
    "javascript:window.pwned=1//",
    '" onmouseover="window.pwned=1" x="',
    "<svg onload=window.pwned=1><style>*{display:none}</style>",
    "left \u202e right \u2066 isolate \u2028 line \u200b zero",
    "\ud800 alone \x00\x1b[31m\r\n",
    "{{7*7}} ${7*7} `",
    "__proto__",
    "x" * 300_000,
)


def test_nothing_in_a_transcript_runs(browser: Any, tmp_path: Path) -> None:
    evil = PAYLOADS[2]
    with Record.open(tmp_path / "evil <b>.mf") as record:
        chat = record.conversation('evil "&<b>')
        chat.append({"role": "user", "content": "\n".join(PAYLOADS[:-1])})
        for at, payload in enumerate(PAYLOADS):
            story = builders.Story(calls=10 * at)
            result = payload + builders.code(at, 3_000)
            thinking = payload[:100].encode("utf-8", "replace").decode()
            story.uses((payload[:200], {payload[:500]: payload}, result, at % 2 == 0), text=payload, thinking=thinking)
            chat.append(story.native("anthropic"))
        for at in range(3):
            chat.append(
                builders.Story(calls=900 + at).read(f"src/{at}.py", builders.code(at, 2_000)).native("anthropic")
            )
        chat.compact(model="claude-haiku-4-5", budget=60_000)
        chat.pin(evil, kind=evil)
        chat.checkpoint(PAYLOADS[1].replace("\n", " ")[:60])
        chat.claim(evil, rests_on=[("check", 1)])
        chat.fail(RuntimeError(evil))
        address = written(record)
        last = record.head.size
    for one in opened(browser, address):
        one.evaluate(
            """async (last) => {
              for (let id = 1; id <= last; id += 1) {
                const there = new Promise((done) => addEventListener("popstate", done, { once: true }));
                location.hash = `#e${id}`;
                await there;
              }
            }""",
            last,
        )
        one.locator("#thread .more[aria-expanded=false]").evaluate_all("all => all.forEach((each) => each.click())")
        ask(one, "onerror")
        assert one.evaluate("window.pwned") is None
        # No element of a payload has come to be one, and none carries code or leads anywhere.
        assert one.locator("article img, article script, article style, article svg, #details script").count() == 0
        assert one.locator("[onerror], [onload], [onmouseover], [style*=display]").count() == 0
        assert one.locator("a").evaluate_all("links => links.map((link) => link.getAttribute('href'))") == ["#messages"]
        expect(one.locator("#thread")).to_contain_text("<script>window.pwned = 1</script>")
        expect(one.locator("#thread .hidden-character", has_text="U+202E").first).to_be_attached()
        assert one.evaluate("document.body.innerText.includes('\\u202e')") is False


def test_a_record_that_does_not_verify_says_so(browser: Any, tmp_path: Path) -> None:
    path = Path(shutil.copy(GOLDEN, tmp_path / "work.mf"))
    Path(f"{path}.heads").write_text(f"5 {'0' * 64} 1\n")
    with Record.open(path, read_only=True) as record:
        address = written(record)
    for one in opened(browser, address):
        expect(one.locator("#verdict")).to_have_text("Record NOT sound")
        expect(one.locator("#details")).not_to_contain_text("Every hash was made anew")
        expect(one.locator("#details pre")).to_contain_text("microfiche verify work.mf --head ")
        expect(one.locator("#details .bad")).to_contain_text("NOT SOUND")


def test_slides_turn_by_key_and_lead_to_the_view(browser: Any, record: Record, address: str) -> None:
    slides = record.path.with_name("slides.html")
    slides.write_text(project(record.conversation("golden"), "slides"), "utf-8")
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    try:
        one = context.new_page()
        wrong: list[str] = []
        one.on("pageerror", lambda error: wrong.append(str(error)))
        one.on("console", lambda message: wrong.append(message.text))
        one.goto(slides.as_uri())
        expect(one.locator("section").first).to_be_in_viewport()
        one.keyboard.press("ArrowRight")
        expect(one.locator("section").nth(1)).to_be_focused()
        expect(one.locator("section").nth(1)).to_be_in_viewport(ratio=0.9)
        one.keyboard.press("End")
        expect(one.locator("section").last).to_be_focused()
        link = one.locator("section").last.locator("a").first
        entry = link.inner_text()
        link.click()
        one.locator("body[data-ready]").wait_for()
        assert one.url.partition("#")[0] == address
        expect(one.locator("#details h2")).to_contain_text(entry)
        assert wrong == []
    finally:
        context.close()


def test_five_thousand_messages_open_and_are_found(browser: Any, tmp_path: Path) -> None:
    story = builders.Story().user("Go on until it holds.")
    for at in range(2_500):
        story.uses(("run", {"command": f"step {at}"}, builders.code(at, 300)))
    with Record.open(tmp_path / "long.mf") as record:
        chat = record.conversation("long")
        written_by_hand = story.native("anthropic")
        chat.append(written_by_hand)
        chat.compact(model="claude-opus-5", budget=60_000)
        last = chat.append({"role": "user", "content": "And the last word."})[0]
        address = written(record)
    assert len(written_by_hand) == 5_001
    for one in opened(browser, address):
        assert one.locator("#thread article").count() == 5_003
        ask(one, "step 1234")
        current = one.locator("article.current")
        expect(current).to_contain_text("step 1234")
        expect(current).to_be_in_viewport()
        expect(current).to_be_focused()
        one.keyboard.press("j")
        expect(one.locator("article.current .part.result")).to_be_in_viewport()
        ask(one, f"entry {last.id}")
        expect(one.locator("article.current")).to_be_in_viewport()


def test_every_control_has_a_name_and_every_id_is_one(page: Any, record: Record) -> None:
    def check(scope: str) -> None:
        unnamed = page.evaluate(
            """(scope) => ["button", "input", "select", "[role]"]
              .flatMap((kind) => [...document.querySelectorAll(`${scope} ${kind}`)])
              .filter((node) => {
                const label = node.getAttribute("aria-label") || node.textContent.trim() || node.title;
                const named = node.getAttribute("aria-labelledby") || (node.labels && node.labels.length);
                return !label && !named && node.getAttribute("role") !== "status";
              }).map((node) => node.outerHTML.slice(0, 120))""",
            scope,
        )
        assert unnamed == []
        twice = page.evaluate(
            """() => {
              const met = new Map();
              for (const node of document.querySelectorAll("[id]")) met.set(node.id, (met.get(node.id) ?? 0) + 1);
              return [...met].filter(([, count]) => count > 1);
            }"""
        )
        assert twice == []

    check("body")
    ask(page, f"entry {newest_pass(record).id}")
    check("body")
    page.locator("#compare-go").click()
    check("body")
    page.locator("#details .thumb").first.click()
    check("#page")
    page.keyboard.press("Escape")
    expect(page.locator("#page")).to_be_hidden()
    page.locator("#help-open").click()
    check("#help")


def test_a_tip_before_everything_and_a_name_alone_are_shown(browser: Any, tmp_path: Path) -> None:
    with Record.open(tmp_path / "work.mf") as record:
        chat = record.conversation("moved away")
        chat.append({"role": "user", "content": "go"})
        chat.branch(None)
        other = record.conversation("only a failure")
        other.fail(RuntimeError("it never began"))
        address = written(record)
    for one in opened(browser, address):
        expect(one.locator("#thread")).to_contain_text("go")
        one.locator("#conversation").select_option(label="only a failure")
        expect(one.locator("#failures .count")).to_contain_text("1")
