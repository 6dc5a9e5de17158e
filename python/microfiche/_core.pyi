from collections.abc import Sequence
from typing import final

GRAMMAR: int
MAX_PIXELS: int

@final
class Sheet:
    @property
    def png(self) -> bytes: ...
    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def cells(self) -> int: ...
    @property
    def turns(self) -> list[int]: ...
    @property
    def start(self) -> tuple[int, int]: ...
    @property
    def end(self) -> tuple[int, int]: ...
    @property
    def escapes(self) -> list[tuple[int, int]]: ...
    @property
    def digest(self) -> bytes: ...

def render(
    segments: Sequence[str | tuple[int, str]],
    cell: tuple[int, int],
    ink: str,
    width: int,
    height: int,
    grid: int,
    min_height: int,
    lines: str,
    level: str,
    first: int,
    inside: int | None,
    threads: int,
) -> list[Sheet]: ...
def read(
    images: Sequence[bytes | tuple[int, int, bytes]],
    cell: tuple[int, int] | None,
    ink: str | None,
    limit: int,
) -> list[str | tuple[int, str]]: ...
def bars(
    image: bytes | tuple[int, int, bytes],
) -> tuple[int, int, int, list[tuple[int, str, int, int, int]]]: ...
def pixels(png: bytes) -> tuple[int, int, bytes]: ...
def drawable(code_point: int, cell: tuple[int, int], ink: str) -> bool: ...
