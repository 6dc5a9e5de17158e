"""As much of Ray's ``ray.data`` as the docs show, in one process: blocks of a Parquet file mapped and written.

Ray is no dependency of the tests; what is tested is that our function takes and gives the batches that it hands over.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow
import pyarrow.parquet


class Dataset:
    def __init__(self, blocks: list[pyarrow.Table]) -> None:
        self.blocks = blocks

    def map_batches(
        self, fn: Callable[[pyarrow.Table], pyarrow.Table], *, batch_size: int, batch_format: str
    ) -> Dataset:
        assert batch_format == "pyarrow"
        cut = [block.slice(at, batch_size) for block in self.blocks for at in range(0, len(block), batch_size)]
        return Dataset([fn(each) for each in cut])

    def write_parquet(self, path: str) -> None:
        Path(path).mkdir(exist_ok=True)
        for number, block in enumerate(self.blocks):
            pyarrow.parquet.write_table(block, Path(path) / f"part-{number}.parquet")


def read_parquet(path: str) -> Dataset:
    return Dataset([pyarrow.parquet.read_table(each) for each in sorted(Path(path).glob("*.parquet"))])


data = SimpleNamespace(read_parquet=read_parquet)
