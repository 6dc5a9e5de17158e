"""A ruler that counts text with the vocabulary of OpenAI's models, by tiktoken (the extra ``tokens``).

Only text is counted this way: the marks around messages, calls and tools stay allowances, images the model's own
rule. The library fetches a vocabulary once and keeps it; where there is no network, ``TIKTOKEN_CACHE_DIR``
names the folder that holds it. Other providers publish no vocabulary of their present models.
"""

from __future__ import annotations

from typing import Any

from ..errors import BadInput, MicroficheError
from .catalogue import Model
from .tokens import Ruler

PIECE = 4_096
"""Characters encoded at once: merging takes more than linear time on a long run. Each cut may add a token."""


class Encoder(Ruler):
    """Counts text with a tiktoken encoding, everything else as :class:`Ruler` does."""

    __slots__ = ("_encoding",)

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._encoding = _encoding(model)
        self.name = f"tiktoken {self._encoding.name}"

    def text(self, text: str) -> int:
        """Tokens of a text; what looks like a special token counts as the text it is."""
        pieces = (text[at : at + PIECE] for at in range(0, len(text), PIECE))
        return sum(len(self._encoding.encode_ordinary(_sound(piece))) for piece in pieces)


def _sound(text: str) -> str:
    """The text with each lone surrogate as U+FFFD, of three bytes too."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _encoding(model: Model) -> Any:
    if model.provider != "openai":
        raise BadInput(
            f"tiktoken has no vocabulary of {model.id}, only of OpenAI's models", "ruler", "leave ruler out to estimate"
        )
    try:
        import tiktoken
    except ImportError:
        raise MicroficheError("tiktoken is not installed", "ruler", "pip install 'microfiche[tokens]'") from None
    try:
        name = tiktoken.encoding_name_for_model(model.id)
    except KeyError:
        raise BadInput(f"tiktoken knows no vocabulary of {model.id}", "ruler", "leave ruler out to estimate") from None
    try:
        return tiktoken.get_encoding(name)
    except Exception as error:  # whatever its client of the network, or its check of the file, raises
        raise MicroficheError(
            f"the vocabulary {name} could not be loaded ({type(error).__name__})",
            "ruler",
            "let tiktoken fetch it once where there is a network and name the folder in TIKTOKEN_CACHE_DIR, "
            "or leave ruler out to estimate",
        ) from error
