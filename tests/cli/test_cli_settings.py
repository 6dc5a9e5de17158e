"""Settings from the environment and pyproject.toml, completion, and what long work says on a terminal."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Ran

    Run = Callable[..., Ran]

SETTINGS = "MODEL BUDGET FORMAT FIDELITY VISION FONT PROVE WAIT".split()


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings but those of the test."""
    for name in SETTINGS:
        monkeypatch.delenv(f"MICROFICHE_{name}", raising=False)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "deep" / "down").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "down")


def project(text: str) -> str:
    """Write the pyproject.toml of the folder above; its name."""
    path = Path.cwd().parent / "pyproject.toml"
    path.write_text(text)
    return str(path)


def receipt(run: Run, harbour: Path, *flags: str) -> dict[str, object]:
    ran = run("compact", harbour, "--dry-run", "--json", *flags)
    assert ran.code == 0, ran.err
    made: dict[str, object] = json.loads(ran.text)
    return made


def asked(made: dict[str, object]) -> tuple[object, object]:
    budget = made["budget"]
    assert isinstance(budget, dict)
    return made["model"], budget["tokens"]


def test_flags_win_over_variables_and_these_over_the_file(
    run: Run, harbour: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project('[tool.microfiche]\nmodel = "claude-opus-5"\nbudget = "30k"\n')
    assert asked(receipt(run, harbour)) == ("claude-opus-5", 30_000)
    monkeypatch.setenv("MICROFICHE_BUDGET", "25k")
    assert asked(receipt(run, harbour)) == ("claude-opus-5", 25_000)
    assert asked(receipt(run, harbour, "--budget", "40k")) == ("claude-opus-5", 40_000)
    monkeypatch.setenv("MICROFICHE_BUDGET", "")
    assert asked(receipt(run, harbour)) == ("claude-opus-5", 30_000)


def test_the_nearest_file_counts_alone(run: Run, harbour: Path) -> None:
    project('[tool.microfiche]\nmodel = "claude-opus-5"\n')
    Path("pyproject.toml").write_text("[project]\nname = 'x'\n")
    ran = run("compact", harbour, "--dry-run")
    assert (ran.code, "--model" in ran.err) == (2, True)


def test_numbers_and_truth_are_taken_as_toml_has_them(run: Run, harbour: Path) -> None:
    project('[tool.microfiche]\nmodel = "claude-opus-5"\nbudget = 20000\nvision = false\nwait = 0.5\nfont = []\n')
    made = receipt(run, harbour)
    assert asked(made) == ("claude-opus-5", 20_000)
    assert made["pages"] == []
    assert receipt(run, harbour, "--vision")["pages"] != []


def test_a_list_of_fonts_goes_to_pages_and_back(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.txt").write_text("x")
    project('[tool.microfiche]\nmodel = "claude-opus-5"\nfont = ["no-such-font.ttf"]\n')
    ran = run("render", tmp_path / "text.txt", "--out", tmp_path / "pages")
    assert (ran.code, "no-such-font.ttf" in ran.err) == (1, True)
    monkeypatch.setenv("MICROFICHE_FONT", os.pathsep.join(("another.ttf", "third.ttf")))
    assert "another.ttf" in run("render", tmp_path / "text.txt", "--out", tmp_path / "pages").err
    # What lists fonts is asked about fonts, not with them.
    assert run("fonts", "--json").code == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[tool.microfiche]\nmodle = "x"\n', "tool.microfiche.modle: no such setting; there are model, "),
        ('[tool.microfiche]\nfidelity = "sharp"\n', "tool.microfiche.fidelity: 'sharp' is not one of"),
        ('[tool.microfiche]\nbudget = "much"\n', "tool.microfiche.budget: 'much' is not a number of tokens"),
        ("[tool.microfiche]\nmodel = [1]\n", "tool.microfiche.model: a list is no value for it"),
        ("[tool.microfiche]\nwait = 2000-01-01\n", "tool.microfiche.wait: a date is no value for it"),
        ('[tool]\nmicrofiche = "x"\n', "tool.microfiche is no table"),
    ],
)
def test_what_is_no_setting_is_an_error_that_names_file_and_key(run: Run, harbour: Path, text: str, said: str) -> None:
    path = project(text)
    ran = run("compact", harbour, "--dry-run")
    assert ran.code == 2 and ran.out == b""
    assert path in ran.err and said in ran.err
    assert run("compact", "--help").code == 0


def test_a_file_that_is_no_toml_matters_only_if_it_speaks_of_us(run: Run, harbour: Path) -> None:
    path = project("[tool.microfiche\n")
    ran = run("compact", harbour, "--model", "claude-opus-5", "--dry-run")
    assert (ran.code, path in ran.err, "not TOML" in ran.err) == (1, True, True)
    project("[tool.\n")
    assert run("compact", harbour, "--model", "claude-opus-5", "--dry-run").code == 0


def test_a_variable_that_is_no_setting_is_named(run: Run, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MICROFICHE_MODLE", "claude-opus-5")
    ran = run("log", work)
    assert ran.code == 2 and "MICROFICHE_MODLE: no such setting; there are MICROFICHE_MODEL, " in ran.err


def test_the_form_that_contexts_have_is_not_asked_of_an_export(
    run: Run, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MICROFICHE_FORMAT", "gemini")
    assert run("export", work).code == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_to_ask_us(run: Run, shell: str) -> None:
    ran = run("completion", shell)
    assert ran.code == 0 and f"_MICROFICHE_COMPLETE={shell}_complete" in ran.text
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=ran.out, check=True, timeout=60)


PROGRAM = Path(sys.executable).with_name("microfiche")


def completed(*words: str) -> list[str]:
    """What bash would offer behind these words."""
    told = {"_MICROFICHE_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(("microfiche", *words))}
    done = subprocess.run(
        [PROGRAM],
        env={**os.environ, **told, "COMP_CWORD": str(len(words))},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return [line.split(",", 1)[1] for line in done.stdout.splitlines() if line]


def test_commands_options_and_values_are_completed() -> None:
    project('[tool.microfiche]\nmodle = "settings do not matter here"\n')
    assert completed("com") == ["compact", "completion"]
    assert completed("compact", "--fi") == ["--fidelity"]
    assert completed("compact", "--fidelity", "w") == ["working"]
    # Readline makes three words of one.
    assert completed("compact", "--fidelity", "=", "w") == ["working"]
    assert completed("compact", "--fidelity", "=") == ["exact", "working", "gist"]


def test_models_and_conversations_are_completed(run: Run, work: Path) -> None:
    assert "claude-opus-5" in completed("shake", str(work), "--model", "claude-op")
    assert run("fork", work, "other").code == 0
    assert completed("log", str(work), "--name", "") == ["harbour", "other"]
    assert completed("log", str(work), "--name", "=", "o") == ["other"]
    assert completed("log", str(work.parent), "--name", "") == completed("log", "--name", "") == []


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_shows_what_begins_as_the_word_does(run: Run, work: Path) -> None:
    Path("microfiche.fish").write_text(run("completion", "fish").text)
    shutil.copy(work, "a,b.mf")
    for line, offered in (
        ("compact --fidelity w", ["working"]),
        ("compact --fidelity=w", ["--fidelity=working"]),
        ("compact --out=a", ["--out=a,b.mf"]),
        ("log a", ["a,b.mf"]),
        ("log a,b.mf --name=", ["--name=harbour"]),
    ):
        asked = f"source microfiche.fish; complete -C 'microfiche {line}'"
        env = {**os.environ, "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(Path.cwd())}
        done = subprocess.run(["fish", "-c", asked], env=env, capture_output=True, text=True, check=True, timeout=60)
        assert [each.split("\t")[0] for each in done.stdout.splitlines()] == offered


_ZSH = """
compdef() {}; compset() { [[ $1 == -P && $WORD == $~2* ]] && print set aside }
compadd() { print -rl -- ${(P)@[-1]} }; _describe() { print -rl -- ${(P)@[-1]} }; _path_files() { print files }
setopt extendedglob; source ./_microfiche
words=(microfiche ${=LINE} $WORD); CURRENT=$#words; _microfiche_completion
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_sets_aside_what_stands_before_a_value(run: Run, folder: Path) -> None:
    """The functions of its completion, which stand only at a prompt, say here what they were told."""
    Path("_microfiche").write_text(run("completion", "zsh").text)
    for line, word, offered in (
        ("compact --fidelity", "w", ["working"]),
        ("compact", "--fidelity=w", ["set aside", "working"]),
        ("compact", "--out=a", ["set aside", "files"]),
        ("", "comp", ["compact", "completion"]),
    ):
        env = {**os.environ, "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}", "LINE": line, "WORD": word}
        done = subprocess.run(["zsh", "-fc", _ZSH], env=env, capture_output=True, text=True, check=False, timeout=60)
        assert [each.split(":")[0] for each in done.stdout.splitlines()] == offered, done.stderr


def test_long_work_is_told_of_on_a_terminal_and_only_there(harbour: Path) -> None:
    command = [sys.executable, "-m", "microfiche", "compact", str(harbour), "--dry-run", "--json"]
    command += ["--model", "claude-opus-5", "--budget", "20k"]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "300", "TTY_COMPATIBLE": "1"}
    ours, theirs = pty.openpty()
    told = b""
    with os.fdopen(ours, "rb", buffering=0) as terminal, Path("receipt.json").open("wb") as out:
        with os.fdopen(theirs, "wb", buffering=0) as stderr:
            running = subprocess.Popen(command, stdout=out, stderr=stderr, env=env)
        with running, suppress(OSError):  # the end of a terminal
            while piece := terminal.read(4096):
                told += piece
    assert running.returncode == 0
    assert b"Making " in told and harbour.name.encode() in told
    json.loads(Path("receipt.json").read_bytes())
    piped = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert piped.stderr == b"" and json.loads(piped.stdout)
