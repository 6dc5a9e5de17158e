"""Writes docs/api.md from the docstrings of every public name.

    python docs/make_api.py

tests/cli/test_docs_api.py fails where the page is not what this makes.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import microfiche as mf

PAGE = Path(__file__).with_name("api.md")

SECTIONS = {
    "Lists in, lists out": "compact recover count Context Plan Policy Receipt SummaryRequest",
    "Is it sendable, and why was it refused": "validate repair Violation Repair refusal Refusal",
    "Pages": "render rerender read_back Page Bar",
    "A record": "Record Conversation tools command Said",
    "What the model saw": "audit Audit",
    "The official clients": "clients",
    "Errors": "",  # every exception
}


def page() -> str:
    """The whole page."""
    names = {title: names.split() for title, names in SECTIONS.items()}
    placed = {name for listed in names.values() for name in listed}
    rest = [name for name in mf.__all__ if name not in placed]
    names["Errors"] = [name for name in rest if _is_error(getattr(mf, name))]
    if others := [name for name in rest if name not in names["Errors"]]:
        names["Others"] = others
    lines = [
        "# API",
        "",
        "Every public name of `import microfiche as mf`, from its docstring (`python docs/make_api.py`).",
        "",
    ]
    for title, listed in names.items():
        lines += [f"## {title}", ""]
        for name in listed:
            lines += [*(_module if inspect.ismodule(getattr(mf, name)) else _one)(name, getattr(mf, name)), ""]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
    return text.rstrip() + "\n"


def _is_error(thing: Any) -> bool:
    return inspect.isclass(thing) and issubclass(thing, Exception)


def _module(name: str, module: Any) -> Iterator[str]:
    yield from (f"### mf.{name}", "", _prose(module.__doc__), "")
    for each, thing in vars(module).items():
        if inspect.isfunction(thing) and thing.__module__ == module.__name__ and not each.startswith("_"):
            yield from (*_callable(f"{name}.{each}", thing), "")


def _one(name: str, thing: Any) -> Iterator[str]:
    if _is_error(thing):
        base = next(each.__name__ for each in thing.__mro__[1:])
        yield from (f"### {name}({base})", "", _prose(thing.__doc__))
    elif inspect.isclass(thing):
        yield from _class(name, thing)
    else:
        yield from _callable(name, thing)


def _callable(name: str, thing: Any) -> Iterator[str]:
    yield from (f"### mf.{name}", "", "```text", f"{name}{_signature(thing)}", "```", "", _prose(inspect.getdoc(thing)))


def _class(name: str, thing: type) -> Iterator[str]:
    yield from (f"### mf.{name}", "", _prose(thing.__doc__), "")
    if dataclasses.is_dataclass(thing):
        fields = [each for each in dataclasses.fields(thing) if not each.name.startswith("_")]
        yield from ("```text", *(f"{each.name}: {_type(each.type)}{_default(each)}" for each in fields), "```", "")
    for method, value in _members(thing):
        doc = inspect.getdoc(value)
        if isinstance(value, property):
            yield f"* `.{method}`: {_line(doc)}"
        elif doc is not None:
            yield f"* `.{method}{_signature(value, bound=True)}`: {_line(doc)}"


def _members(thing: type) -> Iterator[tuple[str, Any]]:
    """Public members of a class and of those of ours that it stands on, in order of writing."""
    known: set[str] = set()
    for home in thing.__mro__:
        if not home.__module__.startswith("microfiche"):
            continue
        for name, value in vars(home).items():
            if name.startswith("_") or name in known:
                continue
            bare = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if isinstance(value, property) or inspect.isfunction(bare):
                known.add(name)
                yield name, value if isinstance(value, property) else bare


def _signature(thing: Any, bound: bool = False) -> str:
    signature = inspect.signature(thing)
    given = list(signature.parameters.values())
    if bound and given and given[0].name in ("self", "cls"):
        given = given[1:]
    told = str(signature.replace(parameters=given))
    told = re.sub(r"<[^<>]* at 0x[^<>]*>", "...", told)
    # Annotations are strings, defaults may be.
    return _type(re.sub(r"""(: |-> )(?:'([^']*)'|"([^"]*)")""", lambda m: m[1] + (m[2] or m[3]), told))


def _type(text: Any) -> str:
    return re.sub(r"\b(?:microfiche|collections\.abc|typing|pathlib)\.(?:\w+\.)*", "", str(text))


def _default(each: dataclasses.Field[Any]) -> str:
    if each.default is not dataclasses.MISSING:
        return f" = {each.default!r}"
    return "" if each.default_factory is dataclasses.MISSING else " = ..."


def _prose(doc: str | None) -> str:
    """A docstring as Markdown."""
    text = inspect.cleandoc(doc or "")
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _line(doc: str | None) -> str:
    return " ".join(_prose(doc).split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
