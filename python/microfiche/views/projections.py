"""The projections of a conversation for people: made of entries, with no fact of their own, and leading to them."""

from __future__ import annotations

import json

from microfiche.conversation import Conversation

from .browse import browse
from .deck import deck, slides_html, slides_markdown
from .html import view
from .links import links_of
from .notebook import notebook, notebook_markdown
from .thread import markdown

PROJECTIONS = ("thread", "notebook", "slides")
"""The thread as the page of ``view`` has it, a Jupyter notebook, a deck of slides."""


def project(chat: Conversation, projection: str, as_markdown: bool = False, page: str = "") -> str:
    """One of :data:`PROJECTIONS` in its own form (HTML, ipynb, HTML), or as Markdown.

    ``page`` is the page that lines lead to, see :func:`microfiche.views.links.links_of`.
    """
    link = links_of(chat.record, page)
    match projection, as_markdown:
        case "thread", False:
            return view(browse(chat.record, [chat.name]))
        case "thread", True:
            return "".join(markdown(chat, link))
        case "notebook", False:
            return json.dumps(notebook(chat, link), indent=1, ensure_ascii=False) + "\n"
        case "notebook", True:
            return "".join(notebook_markdown(chat, link))
        case "slides", False:
            return slides_html(deck(chat), link)
        case "slides", True:
            return "".join(slides_markdown(deck(chat), link))
    raise ValueError(projection)
