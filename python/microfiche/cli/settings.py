"""What options are when nobody gives them: from the environment, and from the nearest pyproject.toml.

Flags win over ``MICROFICHE_*`` variables, these over ``[tool.microfiche]``. Only what says how contexts and pages are
made can be set so, never a file to write: a project that somebody else wrote may hold a pyproject.toml too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from microfiche.errors import BadInput

from .files import plain

SETTINGS = ("model", "budget", "format", "fidelity", "vision", "font", "prove", "wait")
"""Options that can be set, by their names without dashes."""

PREFIX = "MICROFICHE_"
_ELSEWHERE = ("READINGS",)  # variables that other modules read
_UNSET_FOR = ("export", "fonts", "probe", "bench")
"""Commands that ask something else of options of these names."""

_FILE = "pyproject.toml"
_LARGEST = 1 << 20


def defaults(command: click.Command) -> dict[str, Any]:
    """What is set for the options of a command, by the names of its parameters.

    A setting that there is not is an error that names its file and key, and so is a value that its option would refuse.
    """
    found: dict[str, Any] = {}
    for where, name, value in (*_of_project(), *_of_environment()):
        for option in command.params:
            if f"--{name}" in option.opts and command.name not in _UNSET_FOR and option.name is not None:
                found[option.name] = _checked(option, value, where)
    return found


def _checked(option: click.Parameter, value: Any, where: str) -> Any:
    # As a flag would give it, so that its own rules judge it.
    told = [str(each) for each in value] if isinstance(value, list) else str(value)
    if option.multiple and isinstance(told, str):
        told = [told]
    with click.Context(click.Command("settings")) as ctx:
        try:
            option.process_value(ctx, told)
        except click.BadParameter as error:
            raise click.UsageError(plain(f"{where}: {error.message}")) from error
    return told


def _of_environment() -> Iterator[tuple[str, str, Any]]:
    for variable in sorted(os.environ):
        if not variable.startswith(PREFIX) or variable.removeprefix(PREFIX) in _ELSEWHERE:
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name not in SETTINGS:
            raise click.UsageError(plain(f"{variable}: no such setting; {_known(PREFIX, str.upper)}"))
        if value := os.environ[variable]:
            yield variable, name, value.split(os.pathsep) if name == "font" else value


def _of_project() -> Iterator[tuple[str, str, Any]]:
    path = _nearest()
    if path is None:
        return
    for name, value in _table(path).items():
        where = f"{path}: tool.microfiche.{name}"
        if name not in SETTINGS:
            raise click.UsageError(plain(f"{where}: no such setting; {_known('', str)}"))
        several = isinstance(value, list) and name == "font" and all(isinstance(each, str) for each in value)
        if not several and not isinstance(value, str | int | float):
            raise click.UsageError(plain(f"{where}: a {type(value).__name__} is no value for it"))
        yield where, name, value


def _known(front: str, form: Any) -> str:
    return f"there are {', '.join(f'{front}{form(name)}' for name in SETTINGS)}"


def _nearest() -> Path | None:
    try:
        here = Path.cwd()
    except OSError:  # the folder is gone
        return None
    return next((file for folder in (here, *here.parents) if (file := folder / _FILE).is_file()), None)


def _table(path: Path) -> Mapping[str, Any]:
    import tomllib

    with path.open("rb") as file:
        text = file.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise BadInput(f"larger than {_LARGEST:,} bytes", str(path), "run the command elsewhere")
    if b"microfiche" not in text:
        return {}  # whatever is wrong with it is not our matter
    try:
        tool = tomllib.loads(text.decode("utf-8")).get("tool", {})
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not TOML ({error})", str(path), "mend it, or run the command elsewhere") from error
    table = tool.get("microfiche", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise click.UsageError(plain(f"{path}: tool.microfiche is no table"))
    return table
