"""By how much the numbers of two artefacts differ: cells of tables by column, weights by file."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from safetensors import SafetensorError, safe_open

from workflow_scripts.provenance.artefacts import RECORD_FILE

Floats = npt.NDArray[np.float64]


class Apart(NamedTuple):
    """How far the values of one column, or of one file of weights, lie apart."""

    name: str
    differing: int
    """Cells that differ; one that is empty in one of the two differs, two that are no number do not."""
    cells: int
    largest: float | None
    """Largest absolute difference; None where no pair of numbers differs, as in columns of text."""
    mean: float | None
    """Mean absolute difference of the pairs of numbers that differ."""


def apart(a: Path, b: Path) -> list[Apart]:
    """The columns of two tables, or files beside two models' records, whose values differ; rows are compared in order.

    Nothing can be said of tables of different lengths, of columns and tensors that one of the two lacks, and of pages.
    """
    if a.name == b.name == RECORD_FILE:
        found: Iterable[Apart] = _weights(a.parent, b.parent)
    elif {a.suffix, b.suffix} == {".parquet"}:
        found = _columns(pq.read_table(a), pq.read_table(b))
    else:
        found = []
    return [one for one in found if one.differing]


def _columns(a: pa.Table, b: pa.Table) -> Iterator[Apart]:
    if a.num_rows == b.num_rows:
        for name in (name for name in a.column_names if name in b.column_names):
            yield _column(name, a[name].combine_chunks(), b[name].combine_chunks())


def _column(name: str, a: pa.Array, b: pa.Array) -> Apart:
    while _is_list(a.type) and _is_list(b.type) and pc.list_value_length(a).equals(pc.list_value_length(b)):
        a, b = a.flatten(), b.flatten()
    if _is_number(a.type) and _is_number(b.type):
        return _apart(name, [(_floats(a), _floats(b))])
    differing = sum(one != other for one, other in zip(a.to_pylist(), b.to_pylist(), strict=True))
    return Apart(name, differing, len(a), None, None)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _floats(column: pa.Array) -> Floats:
    """Values in double precision; an empty cell, which is no zero, is infinite."""
    filled = pc.if_else(pc.is_null(column), float("inf"), column.cast(pa.float64(), safe=False))
    values: Floats = filled.to_numpy(zero_copy_only=False)
    return values


def _weights(a: Path, b: Path) -> Iterator[Apart]:
    files = sorted(file.relative_to(a) for file in a.rglob("*.safetensors"))
    for file in (file for file in files if (b / file).is_file()):
        with suppress(SafetensorError):  # of another form
            yield _apart(file.as_posix(), _tensors(a / file, b / file))


def _tensors(a: Path, b: Path) -> Iterator[tuple[Floats, Floats]]:
    """Tensors of equal names and shapes, one pair at a time."""
    with safe_open(a, framework="pt") as one, safe_open(b, framework="pt") as other:  # NumPy has no bfloat16
        for name in sorted({*one.keys()} & {*other.keys()}):
            x, y = one.get_tensor(name), other.get_tensor(name)
            if x.shape == y.shape:
                yield x.double().flatten().numpy(), y.double().flatten().numpy()


def _apart(name: str, pairs: Iterable[tuple[Floats, Floats]]) -> Apart:
    cells, differing, numbers, largest, total = 0, 0, 0, 0.0, 0.0
    for a, b in pairs:
        cells += a.size
        unlike = (a != b) & ~(np.isnan(a) & np.isnan(b))
        differing += int(unlike.sum())
        distances = np.abs(a[unlike] - b[unlike])
        distances = distances[np.isfinite(distances)]
        numbers += distances.size
        largest, total = max(largest, distances.max(initial=0.0)), total + float(distances.sum())
    known = (float(largest), total / numbers) if numbers else (None, None)
    return Apart(name, differing, cells, *known)
