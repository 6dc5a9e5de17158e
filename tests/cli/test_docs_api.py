"""The API reference is what the docstrings say, and holds every public name."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType

import microfiche as mf

DOCS = Path(__file__).parents[2] / "docs"


def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_api", DOCS / "make_api.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_docstrings_say() -> None:
    assert (DOCS / "api.md").read_text("utf-8") == maker().page(), "python docs/make_api.py writes it anew"


def test_every_public_name_is_there_with_what_it_is_for() -> None:
    text = (DOCS / "api.md").read_text("utf-8")
    sections = dict(
        zip(*[iter(re.split(r"^### (?:mf\.)?([\w.]+)[^\n]*$", text, flags=re.MULTILINE)[1:])] * 2, strict=True)
    )
    for name in mf.__all__:
        assert len(sections[name].split()) > 3, name
        if inspect.isclass(getattr(mf, name)) and not issubclass(getattr(mf, name), Exception):
            for method, value in vars(getattr(mf, name)).items():
                if not method.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                    assert inspect.getdoc(value) is None or f"`.{method}" in sections[name], (name, method)
    assert {name for name in sections if name.startswith("clients.")} == {
        f"clients.{name}" for name in ("anthropic", "openai", "openai_responses", "google", "summarizer")
    }


def test_every_public_callable_says_what_it_does() -> None:
    for name in mf.__all__:
        assert inspect.getdoc(getattr(mf, name)), name
    for home in (mf.Record, mf.Conversation, mf.Audit, mf.Context, mf.Page):
        for method, value in vars(home).items():
            if not method.startswith("_") and inspect.isfunction(value):
                assert inspect.getdoc(value), f"{home.__name__}.{method}"
