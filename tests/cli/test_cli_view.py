"""The view from the command line: what it writes, what it will not write over, and whom it serves."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import SESSIONS, Ran
from microfiche.views.html import MARK
from microfiche.views.serve import serving

Run = Callable[..., Ran]


def data_of(path: Path) -> Any:
    html = path.read_text("utf-8")
    assert MARK in html
    return json.loads(re.findall(r'id="record-data">(.*?)</script>', html, re.DOTALL)[0])


def test_a_record_is_written_beside_under_its_name(run: Run, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work.parent)
    ran = run("view", work)
    assert (ran.code, ran.err) == (0, "") and ran.text.startswith("Wrote work.html: 1 conversation, 0 pages, ")
    assert data_of(work.with_suffix(".html"))["record"]["name"] == "work.mf"
    assert run("view", work).code == 0, "what it wrote it may write anew"
    work.with_suffix(".html").write_text("<p>mine</p>")
    ran = run("view", work)
    assert ran.code == 1 and "was not written by this command" in ran.err
    assert work.with_suffix(".html").read_text() == "<p>mine</p>"
    ran = run("view", work, "--out", "work.html", "--json")
    told = json.loads(ran.text)
    assert told["sound"] and told["conversations"] == ["harbour"]
    assert told["bytes"] == work.with_suffix(".html").stat().st_size


@pytest.mark.parametrize("session", sorted(SESSIONS.iterdir()), ids=lambda path: path.name)
def test_a_session_is_looked_at_and_left_as_it_is(run: Run, session: Path, tmp_path: Path) -> None:
    before = session.read_bytes()
    ran = run("view", session, "--out", tmp_path / "page.html")
    assert ran.code == 0, ran.err
    first = (tmp_path / "page.html").read_bytes()
    (conversation,) = data_of(tmp_path / "page.html")["conversations"]
    assert data_of(tmp_path / "page.html")["record"]["verify"] == "", "there is no record to verify"
    assert conversation["name"] == session.stem and len(conversation["entries"]) > 1
    assert session.read_bytes() == before and [each.name for each in tmp_path.iterdir()] == ["page.html"]
    assert run("view", session, "--out", tmp_path / "page.html").code == 0
    assert (tmp_path / "page.html").read_bytes() == first, "the same session gives the same page"
    ran = run("view", "-", "--out", tmp_path / "piped.html", stdin=before)
    assert ran.code == 0 and data_of(tmp_path / "piped.html")["conversations"][0]["name"] == "session"


def test_an_export_is_looked_at_as_a_record(run: Run, work: Path, tmp_path: Path) -> None:
    assert run("export", work, "--out", tmp_path / "work.jsonl").code == 0
    assert run("view", tmp_path / "work.jsonl", "--out", tmp_path / "page.html").code == 0
    assert run("view", work, "--out", tmp_path / "same.html").code == 0
    told, same = data_of(tmp_path / "page.html"), data_of(tmp_path / "same.html")
    assert told["conversations"] == same["conversations"]


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--out", "x.html", "--serve"), 2, "--out or --serve"),
        (("--port", "1"), 2, "--port goes with --serve"),
        (("--name", "none"), 1, "no conversation 'none'"),
        (("--from", "atif", "--out", "x.html"), 2, "this is a record"),
    ],
)
def test_what_cannot_be_is_said(
    run: Run, work: Path, args: tuple[str, ...], code: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work.parent)
    ran = run("view", work, *args)
    assert ran.code == code and words in ran.err
    assert not (work.parent / "x.html").exists()


def test_a_head_that_was_kept_is_held_against_the_record(run: Run, work: Path, tmp_path: Path) -> None:
    size, root = run("verify", work).text.splitlines()[1].split()[1].split(":")
    held = run("view", work, "--out", tmp_path / "page.html", "--head", f"{size}:{root}", "--json")
    fits = data_of(tmp_path / "page.html")["record"]
    assert json.loads(held.text)["sound"] and fits["sound"]
    assert fits["against"] == "the head of the list beside it fits, and 1 kept elsewhere"
    ran = run("view", work, "--out", tmp_path / "page.html", "--head", f"{size}:{'0' * 64}")
    assert ran.code == 3 and "NOT SOUND" in ran.err
    assert not data_of(tmp_path / "page.html")["record"]["sound"]
    assert run("view", work, "--out", tmp_path / "page.html", "--heads", tmp_path / "none").code == 1


def test_a_file_that_is_not_there_is_named(run: Run, tmp_path: Path) -> None:
    ran = run("view", tmp_path / "none.mf", "--out", tmp_path / "x.html")
    assert ran.code == 1 and "none.mf" in ran.err


def get(
    address: str, path: str = "/", host: str | None = None, method: str = "GET"
) -> tuple[int, bytes, dict[str, str]]:
    place = address.removeprefix("http://").rstrip("/")
    connection = http.client.HTTPConnection(place, timeout=30)
    try:
        connection.request(method, path, headers={"Host": host or place})
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())
    finally:
        connection.close()


def test_only_this_machine_is_served_and_only_the_page() -> None:
    with serving("<p>page ü</p>") as address:
        assert address.startswith("http://127.0.0.1:")
        status, body, headers = get(address)
        assert (status, body.decode()) == (200, "<p>page ü</p>")
        assert headers["Cache-Control"] == "no-store" and headers["X-Content-Type-Options"] == "nosniff"
        assert get(address, method="HEAD")[:2] == (200, b"")
        assert get(address, "/etc/passwd")[0] == 404
        port = address.rstrip("/").rpartition(":")[2]
        assert get(address, host=f"localhost:{port}")[0] == 200
        assert get(address, host=f"evil.example:{port}")[0] == 403
        assert get(address, host="127.0.0.1")[0] == 403
        assert get(address, method="POST")[0] == 501
    with pytest.raises(OSError):
        get(address)


def test_serving_ends_when_it_is_told_to(work: Path) -> None:
    code = "from microfiche.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "view", str(work), "--serve"], stdout=subprocess.PIPE, text=True
    ) as served:
        assert served.stdout is not None
        try:
            found = re.search(r"http://127\.0\.0\.1:\d+/", served.stdout.readline())
            assert found is not None
            assert b"record-data" in get(found[0])[1]
        finally:
            served.terminate()
        assert served.wait(timeout=60) == 0
