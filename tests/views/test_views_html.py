"""The HTML holds what the record says, as data that cannot run, in colours that can be read."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import microfiche as mf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from microfiche.conversation import Record
from microfiche.views import browse as browsing
from microfiche.views.browse import browse
from microfiche.views.html import asset, document, escape, policy, view
from microfiche.views.links import verify_command

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "0.1.mf"


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    with Record.open(shutil.copy(GOLDEN, tmp_path / "work.mf"), read_only=True) as opened:
        yield opened


def names(record: Record) -> list[str]:
    return [each.name for each in record.conversations()]


def data_of(html: str) -> Any:
    (text,) = re.findall(r'<script type="application/json" id="record-data">(.*?)</script>', html, re.DOTALL)
    return json.loads(text)


def test_the_command_that_verifies_is_for_a_shell() -> None:
    said = verify_command("it's $HOME.mf", 3, "ab")
    assert shlex.split(said) == ["microfiche", "verify", "it's $HOME.mf", "--head", "3:ab"]
    assert shlex.split(verify_command("--head.mf", 3, "ab"))[2] == "./--head.mf"


def test_the_page_holds_every_entry_and_every_page_of_the_record(record: Record) -> None:
    told = data_of(view(browse(record, names(record))))
    entries = [entry for each in told["conversations"] for entry in each["entries"]]
    assert sorted(entry["id"] for entry in entries) == list(range(1, record.head.size + 1))
    assert {entry["id"]: entry["leaf"] for entry in entries} == {e.id: e.leaf.hex() for e in record.entries()}
    assert told["record"]["sound"] and told["record"]["root"] == record.head.root
    calls = [call for each in told["conversations"] for call in each["calls"].values()]
    assert len(calls) > 30 and all(call["proven"] for call in calls)
    assert len(told["pages"]) > 10
    for page in told["pages"]:
        assert {bar[0] for bar in page["bars"]} <= set(range(page["turns"][0], page["turns"][1] + 1))
        (read,) = [mf.read_back(base64.b64decode(page["png"]))]
        assert read


def test_calls_beyond_the_newest_are_told_to_be_unproven(record: Record) -> None:
    told = browse(record, names(record), prove=1)
    for each in told["conversations"]:
        entries = {entry["id"]: entry for entry in each["entries"]}
        unproven = [id for id, call in each["calls"].items() if "proven" not in call]
        assert unproven and max(unproven) < max(each["calls"])
        assert all(entries[id]["kind"] != "compaction" for id in unproven)


def test_what_is_too_large_is_named_and_not_left_out_in_silence(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browsing, "PAGES_LIMIT", 200_000)
    monkeypatch.setattr(browsing, "IMAGES_LIMIT", 0)
    monkeypatch.setattr(browsing, "LONGEST_TEXT", 1_000)
    told = browse(record, names(record))
    assert {"png" in page for page in told["pages"]} == {True, False}
    assert all(page["redrawn"] and page["digest"] for page in told["pages"])
    assert told["images"] == {}
    texts = [
        (inner["text"], inner["size"])
        for each in told["conversations"]
        for entry in each["entries"]
        for part in entry.get("parts", ())
        for inner in (part, *part.get("parts", ()))
        if inner["type"] == "text" and inner["size"] > 1_000
    ]
    assert texts
    for (begin, between, end), size in texts:
        assert len(begin) + between + len(end) == size and len(begin) == len(end) == 500


PAYLOADS = (
    "</script><script>window.pwned=1</script>",
    "<!--<script>",
    "]]>\u2028\u2029",
    "<img src=x onerror=window.pwned=1>",
    "\ud800 \udfff \x00",
    "&lt;&amp;",
)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_data_cannot_end_its_element(payload: str) -> None:
    html = document(payload, "<main></main>", "p{}", "1;", {"a": [payload], payload: 1})
    assert data_of(html) == {"a": [payload], payload: 1}
    body = html.partition("<body")[2]
    assert payload not in html and body.count("<script") == 2 and "<!--" not in html
    html.encode("utf-8")


@given(st.text())
def test_escaped_text_holds_no_mark_up(text: str) -> None:
    escaped = escape(text)
    assert not re.search(r"[<>\"']", escaped) and not re.search(
        r"[\x00-\x08\x0b-\x1f\u202a-\u202e\ud800-\udfff]", escaped
    )
    assert re.fullmatch(r"(?:[^&]|&(?:amp|lt|gt|quot|#39);)*", escaped)


def test_the_policy_allows_this_script_and_style_and_nothing_else(record: Record) -> None:
    html = view(browse(record, names(record)[:1]))
    (allowed,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    script = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)[-1]
    assert allowed == policy(style, script)
    rules = dict(rule.split(" ", 1) for rule in allowed.split("; "))
    assert rules["default-src"] == "'none'" and rules["img-src"] == "data:"
    for name, text in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"


def test_nothing_is_fetched_and_nothing_is_parsed_as_html() -> None:
    for each in files("microfiche.views").joinpath("assets").iterdir():
        text = each.read_text("utf-8")
        assert not re.search(r"https?:|//[a-z]+\.|@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket|import\(", text), (
            each.name
        )
        found = re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|DOMParser|"
            r"createContextualFragment|setTimeout\(\s*[\"'`]|cssText|\son[a-z]+=",
            text,
        )
        assert found is None, (each.name, found)
        assert not re.search(r"\.(?:href|src) = (?!`data:)", text), each.name


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, two: str) -> float:
    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_every_text_can_be_read_in_light_and_in_dark() -> None:
    light, dark = (
        dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6});", part)) for part in asset("colours.css").split("@media", 1)
    )
    assert light.keys() == dark.keys() and len(light) > 8
    for colours in (light, dark):
        for ground in ("paper", "ground", "chosen"):
            for ink in ("ink", "quiet", "link", "mark", "bad", "good"):
                assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
        assert contrast(colours["ink"], colours["found"]) >= 4.5
