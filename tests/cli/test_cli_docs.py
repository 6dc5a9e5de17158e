"""What the README and the docs say is what the commands do.

    python tests/cli/test_cli_docs.py

writes the output that the README shows anew.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click
import microfiche as mf
import pytest
from microfiche import formats
from microfiche.cli import main

if TYPE_CHECKING:
    from conftest import Ran

    Run = Callable[..., Ran]

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def commands() -> dict[str, click.Command]:
    """Every command by its name, in the order of the help."""
    assert isinstance(main, click.Group)
    ctx = click.Context(main)
    return {name: command for name in main.list_commands(ctx) if (command := main.get_command(ctx, name)) is not None}


COMMANDS = commands()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def main_job() -> list[str]:
    """The README's command, as words."""
    (line,) = [each for each in blocks(README.read_text(), "sh") if each.startswith("microfiche compact")]
    return shlex.split(line)[1:]


def shown(output: str) -> str:
    """The output as the README shows it: without the time, the bytes, and the pages between the second and the last."""
    lines: list[str] = []
    width = None
    for line in output.splitlines():
        if header := re.search(r" +bytes *$", line):
            width = header.start()
        elif not line:
            width = None
        if not line.startswith("time "):
            lines.append(line[:width].rstrip())
    rows = [at for at, line in enumerate(lines) if re.match(r" +[0-9]+ +[0-9]", line)]
    lines[rows[2] : rows[-1]] = ["   ..."]
    return "\n".join(lines) + "\n"


def test_the_readme_shows_what_its_command_prints(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    ran = run(*main_job())
    assert ran.code == 0, ran.err
    (block,) = blocks(README.read_text(), "text")
    assert block == shown(ran.text), "python tests/cli/test_cli_docs.py writes it anew"
    assert (tmp_path / "out" / "page-003.png").exists()
    (line,) = [each for each in blocks(README.read_text(), "sh") if each.startswith("microfiche read")]
    assert run(*shlex.split(line)[1:]).code == 0


def conversation() -> list[Any]:
    history = formats.read((ROOT / "tests" / "data" / "sessions" / "harbour.claude-code.jsonl").read_bytes())
    body, _ = formats.write(history, "anthropic")
    messages: list[Any] = body["messages"]
    return messages


@pytest.mark.parametrize("page", [README, ROOT / "docs" / "render.md"], ids=lambda page: page.name)
def test_python_in_the_docs_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sent: list[dict[str, Any]] = []
    client = SimpleNamespace(messages=SimpleNamespace(create=lambda **request: sent.append(request)))
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    names: dict[str, Any] = {
        "messages": conversation(),
        "plan": None,
        "SYSTEM": "You look after a harbour.",
        "TOOLS": [{"name": "Bash", "description": "Runs a command.", "input_schema": schema}],
        "client": client,
        "text": "any text\n" * 2000,
    }
    # The README's recovery is run before the judge, in tests/testing/test_clients.py.
    (code,) = [each for each in blocks(page.read_text(), "python") if "mf.recover(" not in each]
    exec(compile(code, str(page), "exec"), names)
    if page == README:
        assert mf.validate(sent[0], "anthropic") == []
        assert names["original"] and names["fit"].messages == names["messages"]


def options(command: click.Command) -> set[str]:
    found = {name for each in command.params if isinstance(each, click.Option) for name in each.opts}
    return found | {name for each in command.params for name in each.secondary_opts}


def section(name: str) -> str:
    """What docs/commands.md says of a command."""
    text = (ROOT / "docs" / "commands.md").read_text()
    return text.split(f"## microfiche {name}\n")[1].split("\n## ")[0]


def test_every_command_is_documented_and_no_other() -> None:
    text = (ROOT / "docs" / "commands.md").read_text()
    assert re.findall(r"^## microfiche (\w+)$", text, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_is_documented_and_no_other(name: str) -> None:
    rows = [line.split("|")[1] for line in section(name).splitlines() if line.startswith("| `--")]
    documented = {option for row in rows for option in re.findall(r"--[a-z-]+", row)}
    assert documented == options(COMMANDS[name])


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_choice_is_documented(name: str) -> None:
    for each in COMMANDS[name].params:
        if isinstance(each.type, click.Choice):
            spelled = f"`{each.opts[0]} " if isinstance(each, click.Option) else f"`{str(each.name).upper()}`"
            (row,) = [line for line in section(name).splitlines() if line.startswith("| ") and spelled in line]
            for choice in each.type.choices:
                assert f"`{choice}`" in row or "as for `compact`" in row


def words(line: str) -> list[str]:
    """A command line as words, without what is piped into it and where its output goes."""
    found = shlex.split(line)
    found = found[: found.index(">")] if ">" in found else found
    return found[found.index("|") + 1 :] if "|" in found else found


def examples(help: str) -> list[list[str]]:
    """The command lines that a help ends with, as words, without what a shell does before and behind them."""
    lines = re.split(r"Examples?:", help)[1].split("\n\n  Every")[0].strip().splitlines()
    return [words(line) for line in lines]


def lines_of_docs() -> list[list[str]]:
    """The command lines in the README and the docs, as words."""
    found = []
    for page in (README, *sorted((ROOT / "docs").glob("*.md"))):
        for line in re.findall(r"^ *(?:[^\n|`]+ \| )?(microfiche [a-z]+ [^\n]*)$", page.read_text(), re.MULTILINE):
            if "..." not in line and "[OPTIONS]" not in line and line.split()[1] in COMMANDS:
                found.append(words(line))
    return found


SHARED = 3
"""Commands that have an option of one name and meaning: then an example with any of them does."""


def test_every_option_has_an_example(run: Run) -> None:
    shown = [*lines_of_docs(), *(line for name in COMMANDS for line in examples(run(name, "--help").text))]
    used = {(line[1], word) for line in shown for word in line}
    shared = Counter(option for command in COMMANDS.values() for option in options(command))
    missing = []
    for name, command in COMMANDS.items():
        for option in (each for each in command.params if isinstance(each, click.Option)):
            spelled = {*option.opts, *option.secondary_opts}
            homes = list(COMMANDS) if shared[option.opts[0]] >= SHARED else [name]
            if not any((home, each) in used for home in homes for each in spelled):
                missing.append(f"{name} {option.opts[0]}")
    assert missing == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_has_an_example_that_the_command_takes(run: Run, name: str) -> None:
    ran = run(name, "--help")
    assert ran.code == 0
    command = COMMANDS[name]
    lines = examples(ran.text)
    assert lines
    for line in lines:
        assert line[:2] == ["microfiche", name]
        command.make_context(name, line[2:], resilient_parsing=False)
    for option in options(command):
        assert option in ran.text


def test_every_command_line_in_the_docs_is_one_that_the_commands_take() -> None:
    for line in lines_of_docs():
        COMMANDS[line[1]].make_context(line[1], line[2:])


def test_links_lead_somewhere() -> None:
    for page in (README, *sorted((ROOT / "docs").glob("*.md"))):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            assert target.startswith("https://") or (page.parent / target).exists(), (page.name, target)


def test_the_script_is_installed_and_says_its_version() -> None:
    script = Path(sys.executable).with_name("microfiche")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True, timeout=60)
    assert re.fullmatch(r"microfiche, version \d+\.\d+\.\d+\n", done.stdout)


if __name__ == "__main__":
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "tests").symlink_to(ROOT / "tests")
        os.chdir(scratch)
        done = subprocess.run(
            [sys.executable, "-c", "from microfiche.cli import main; main()", *main_job()],
            capture_output=True,
            text=True,
            check=True,
        )
    start, end = "```text\n", "```\n"
    head, rest = README.read_text().split(start, 1)
    README.write_text(head + start + shown(done.stdout) + end + rest.split(end, 1)[1])
