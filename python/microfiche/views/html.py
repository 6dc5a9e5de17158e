"""Self-contained HTML: one file, no network, nothing in it that a transcript could make run.

Every document carries a content security policy that allows its own style and script by their digests and
pictures from ``data:``, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

MARK = '<meta name="generator" content="microfiche">'
"""By this line a file that may be written over is known."""

_SCRIPTS = ("text", "model", "thread", "tree", "pages", "details", "search", "compare", "app")

# Controls, lone surrogates and what turns the order of others around, as in assets/text.js.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}


def escape(text: str) -> str:
    """A text for HTML, in an element or a quoted attribute; what would not be seen is written out."""
    return "".join(_ENTITIES.get(each, each) for each in _HIDDEN.sub(_sign, text))


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"^{chr(code ^ 0x40)}" if code < 0x20 or code == 0x7F else f"U+{code:04X}"


def asset(name: str) -> str:
    """A file of ``views/assets``."""
    return (files("microfiche.views") / "assets" / name).read_text("utf-8")


def policy(style: str, script: str = "") -> str:
    """The content security policy of a document with this style and script."""
    run = f"script-src '{_digest(script)}'; " if script else ""
    return f"default-src 'none'; {run}style-src '{_digest(style)}'; img-src data:; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def document(title: str, body: str, style: str, script: str = "", data: Mapping[str, Any] | None = None) -> str:
    """A whole document; ``title`` is text, ``body`` HTML, ``data`` what the script reads as ``#record-data``."""
    held = f'<script type="application/json" id="record-data">{_json(data)}</script>\n' if data is not None else ""
    run = f"<script>{script}</script>\n" if script else ""
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"{MARK}\n<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n"
        f'<body data-pane="messages">\n{body}\n{held}{run}</body>\n</html>\n'
    )


def _json(data: Mapping[str, Any] | None) -> str:
    """JSON in ASCII that cannot end the element that it stands in, whatever its strings hold."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def view(data: Mapping[str, Any]) -> str:
    """The view of a record, of what :func:`microfiche.views.browse.browse` tells of it."""
    code = "\n".join(asset(f"{name}.js") for name in _SCRIPTS)
    script = f'(() => {{\n"use strict";\n{code}}})();\n'
    name = data["record"]["name"]
    return document(f"{name} · microfiche", asset("view.html"), asset("colours.css") + asset("view.css"), script, data)
