"""How the estimate of text stands to its true tokens, for text of which each token is short and for that of sessions.

    python benches/estimates.py [SESSION...] [--blanks 1] [--weight 2.4] [--over 1.2]

True are OpenAI's vocabularies by tiktoken (the extra ``tokens``; without a network ``TIKTOKEN_CACHE_DIR`` names the
folder of its files). *Estimate* is that of the package over the true tokens, *weighed* what it would be if text
counted as (bytes - BLANKS × spaces and line ends + WEIGHT × digits, capitals and controls) / OVER bytes wherever
that is more. The texts of a session are its results and messages of 400 characters and more: their sum, the
lowest, the highest, and the share of which the estimate is over 1.38 (the package's own bound for ordinary text).
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import string
import uuid
from collections.abc import Iterator
from pathlib import Path

import tiktoken
from microfiche import formats
from microfiche.messages import Text, ToolResult
from microfiche.models import Ruler, find
from microfiche.models.tokens import SPREAD

HEAVY = (string.digits + string.ascii_uppercase + "\x7f" + "".join(map(chr, range(32)))).encode()
HEAVY = HEAVY.translate(None, b"\t\n\r")
MODELS = {"o200k_base": "gpt-5.6-sol", "cl100k_base": "gpt-4"}
SIZE = 40_000
LEAST = 400


def dense() -> Iterator[tuple[str, str]]:
    """Texts of short tokens, each made from the same dice."""
    dice = random.Random(5)

    yield "base64", base64.b64encode(dice.randbytes(SIZE)).decode()
    yield "base64, lines of 76", base64.encodebytes(dice.randbytes(SIZE)).decode()
    yield "hex", dice.randbytes(SIZE // 2).hex()
    yield "hex, capitals", dice.randbytes(SIZE // 2).hex().upper()
    yield "UUIDs", "\n".join(str(uuid.UUID(bytes=dice.randbytes(16))) for _ in range(SIZE // 37))
    rows = [{"id": str(uuid.UUID(bytes=dice.randbytes(16))), "n": dice.randrange(10**6)} for _ in range(SIZE // 70)]
    yield "JSON of UUIDs", json.dumps(rows, indent=1)
    yield (
        "lock file",
        "\n".join(
            f'    "node_modules/p{at}": {{\n      "version": "{at % 9}.{at % 31}.0",\n'
            f'      "integrity": "sha512-{base64.b64encode(dice.randbytes(64)).decode()}"\n    }},'
            for at in range(SIZE // 190)
        ),
    )
    yield "numbers", "\n".join(", ".join(str(dice.randrange(10**5)) for _ in range(9)) for _ in range(SIZE // 60))
    letters = string.ascii_uppercase + string.digits
    yield "order numbers", "\n".join("".join(dice.choices(letters, k=10)) for _ in range(SIZE // 11))
    yield "controls", "".join(chr(dice.randrange(32)) for _ in range(SIZE))
    yield "colours", "\x1b[31m\x1b[1;32mok\x1b[0m\n" * (SIZE // 20)
    yield "marks", "".join(dice.choices(string.punctuation, k=SIZE))


def texts(path: str) -> Iterator[str]:
    """The longer texts and results of a session."""
    for message in formats.read(Path(path).read_bytes()).messages:
        for part in message.parts:
            if isinstance(part, Text | ToolResult) and len(part.text) >= LEAST:
                yield part.text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("session", nargs="*")
    parser.add_argument("--blanks", type=float, default=1)
    parser.add_argument("--weight", type=float, default=2.4)
    parser.add_argument("--over", type=float, default=1.2)
    options = parser.parse_args()

    def weighed(text: str) -> int:
        raw = text.encode("utf-8", "surrogatepass")
        heavy = len(raw) - len(raw.translate(None, HEAVY))
        blanks = raw.count(b" ") + raw.count(b"\n")
        return max(len(raw), round((len(raw) - options.blanks * blanks + options.weight * heavy) / options.over))

    for vocabulary, model in MODELS.items():
        encoding, ruler = tiktoken.get_encoding(vocabulary), Ruler(find(model))

        def ratios(text: str, encoding: tiktoken.Encoding = encoding, ruler: Ruler = ruler) -> tuple[int, int, int]:
            true = len(encoding.encode_ordinary(text))
            return true, ruler.text(text), ruler.text("a" * weighed(text))

        print(f"{vocabulary:40}{'estimate':>10}{'weighed':>10}")
        for name, text in dense():
            true, plain, more = ratios(text)
            print(f"{name:40}{plain / true:10.2f}{more / true:10.2f}")
        for path in options.session:
            measured = [ratios(text) for text in texts(path)]
            sums = [sum(column) for column in zip(*measured, strict=True)]
            shares = [sorted(row[column] / row[0] for row in measured) for column in (1, 2)]
            print(f"{Path(path).name[:30]:30}{'sum':>10}{sums[1] / sums[0]:10.2f}{sums[2] / sums[0]:10.2f}")
            for what, at in (("lowest", 0), ("highest", -1)):
                print(f"{what:>40}{shares[0][at]:10.2f}{shares[1][at]:10.2f}")
            over = [sum(share > SPREAD / 100 for share in column) / len(column) for column in shares]
            print(f"{f'over {SPREAD / 100:g}':>40}{over[0]:10.1%}{over[1]:10.1%}")


if __name__ == "__main__":
    main()
