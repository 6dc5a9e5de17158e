"""Who reads a page for the probe: a model through the official client that the user has a key for, or any program.

A reader gets the PNG file of a page and the words of the questions, and gives its answer as text.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from microfiche import formats
from microfiche.errors import BadInput, MicroficheError
from microfiche.messages import History, Image, Message, Text
from microfiche.pages.render import Page

from .ocr import run

Asked = Callable[[Page, str], str]
"""Answers questions on a page."""

_PACKAGES = {
    "anthropic": ("anthropic", "anthropic"),
    "openai_chat": ("openai", "openai"),
    "openai_responses": ("openai", "openai"),
    "gemini": ("google.genai", "google"),
}
_PATIENCE = 600.0
"""Seconds that an answer may take."""


@contextmanager
def client(wire: str, model: str, longest: int, base_url: str | None = None) -> Iterator[Asked]:
    """A model behind the official client of a wire; keys are where the client itself looks for them.

    ``longest`` is the longest answer in tokens, ``base_url`` another address than the provider's.
    :class:`MicroficheError` if the client is not installed, has no key, or the provider gives an error.
    """
    if wire not in _PACKAGES:
        raise BadInput(f"no client is known for {wire!r}", "probe", f"name one of {', '.join(_PACKAGES)}")
    package, extra = _PACKAGES[wire]
    try:
        library = import_module(package)
    except ImportError as error:
        cure = f"pip install 'microfiche[{extra}]', or name a program with --reader"
        raise MicroficheError(f"the package {package} is not installed", "probe", cure) from error
    try:
        opened = _opened(library, wire, base_url)
    except Exception as error:  # each library has its own for a missing key
        cure = "set the key where the client looks for it, such as its environment variable"
        raise MicroficheError(f"no client for {wire}: {error}", "probe", cure) from error

    def ask(page: Page, words: str) -> str:
        try:
            return _answer(library, opened, wire, body(page, words, wire, model, longest), model)
        except MicroficheError:
            raise
        except Exception as error:  # whatever the network or the provider says
            raise MicroficheError(
                f"the model gave no answer: {type(error).__name__}: {str(error)[:300]}",
                model,
                "mend that, and call again with the same --out: what was answered is not asked again",
            ) from error

    with opened:
        yield ask


def body(page: Page, words: str, wire: str, model: str, longest: int) -> dict[str, Any]:
    """The request that asks about a page, with the provider's switches that keep pages as they are."""
    image = Image(page.png, "image/png", page.width, page.height, owner="page")
    made, _ = formats.write(History([Message("user", (image, Text(words)))], wire, wire=wire), wire)
    if wire == "gemini":
        made["generationConfig"] = {**made.get("generationConfig", {}), "maxOutputTokens": longest}
        return made
    limit = {"anthropic": "max_tokens", "openai_chat": "max_completion_tokens"}.get(wire, "max_output_tokens")
    return {"model": model, limit: longest, **made}


def _opened(library: Any, wire: str, base_url: str | None) -> Any:
    if wire == "gemini":
        options = library.types.HttpOptions(base_url=base_url, timeout=int(_PATIENCE * 1000))
        return library.Client(http_options=options)
    where = {"base_url": base_url} if base_url is not None else {}
    made = library.Anthropic if wire == "anthropic" else library.OpenAI
    return made(timeout=_PATIENCE, **where)


def _answer(library: Any, opened: Any, wire: str, request: dict[str, Any], model: str) -> str:
    if wire == "anthropic":
        answer = opened.messages.create(**request)
        return "".join(block.text for block in answer.content if block.type == "text")
    if wire == "openai_chat":
        return opened.chat.completions.create(**request).choices[0].message.content or ""
    if wire == "openai_responses":
        return str(opened.responses.create(**request).output_text)
    contents = [library.types.Content.model_validate(each) for each in request["contents"]]
    config = library.types.GenerateContentConfig.model_validate(request["generationConfig"])
    return opened.models.generate_content(model=model, contents=contents, config=config).text or ""


@contextmanager
def program(command: str) -> Iterator[Asked]:
    """A program: its last argument is a folder with page.png and questions.txt, what it prints is the answer."""
    words = shlex.split(command)
    if not words:
        raise BadInput("no program is named", "--reader", "give its name")

    def ask(page: Page, questions: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            page.save(Path(folder) / "page.png")
            (Path(folder) / "questions.txt").write_text(questions, "utf-8")
            return run([*words, folder], command)

    yield ask
