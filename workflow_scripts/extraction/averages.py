"""Static token vectors: the mean of a token's contextual vectors over a corpus, in every layer ("Avg.").

Sums are exact, so that they do not depend on the order of addition: the sums of all shards added up equal, bit for
bit, the sums of one pass over the whole corpus, whatever the number of shards. This holds because


* each state is first rounded to a multiple of 2^-24 (half of a float32's last digit at 1; states of 1 and above are
  multiples already, smaller ones change by 3e-8 at most, a tenth of the difference between two kernels);
* float64 represents every multiple of 2^-24 up to 2^29, so that no addition rounds while sums stay below that.
  BERT's most frequent token (6.5 million occurrences, entries below 16) stays under 2^27. A larger sum is an error.

The last digit of a state depends on the batch in which it is computed. Batches are therefore formed within blocks
of a fixed number of sentences, by length under a token budget (``forward.passes``), and a shard is a range of whole
blocks.

Shards and averages are written in slices of neighbouring token ids, the same ids in every shard and a row group each,
so that shards are added up slice by slice: memory grows neither with the corpus nor with vocabulary or shards.

ASSUME: the corpus is averaged sentence by sentence, one forward pass each, as everywhere else here; the paper does
not say. [CLS], [SEP] and every other id that occurs have a mean too. A token that never occurs gets the mean of its
layer's means (F4: not stated in the paper), and the notes of scores say how often that was needed.

Shape suffixes: V vocabulary, L hidden states from 0, D width, O tokens that occur.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from workflow_scripts.columns.extraction import TOKEN_AVERAGES, TOKEN_SUMS
from workflow_scripts.errors import DataError
from workflow_scripts.extraction.forward import passes
from workflow_scripts.models.tokens import TokenisedText
from workflow_scripts.settings.precision import Precision

STEP = 2.0**-24
LIMIT = 2.0**29
SLICE_BYTES = 1 << 24
"""Of sums in one slice; the merge takes about six times this, most of it while it adds a shard's part, and 280 MB more
than at its start for BERT-base."""
_ROUNDER = 1.5 * 2.0**52 * STEP  # a float64 of this size has the last digit STEP, so that adding it rounds


class TokenSums(NamedTuple):
    """Sums of states and numbers of occurrences."""

    sums_LVD: Tensor
    counts_V: Tensor

    @classmethod
    def empty(cls, layers: int, vocabulary: int, width: int, device: torch.device) -> "TokenSums":
        """Zeros; they take L x V x D x 8 bytes."""
        sums_LVD = torch.zeros(layers, vocabulary, width, dtype=torch.float64, device=device)
        return cls(sums_LVD, torch.zeros(vocabulary, dtype=torch.int64, device=device))

    def add(self, ids_F: Tensor, layers: Sequence[Tensor]) -> None:
        """Add the states of some tokens.

        Args:
            ids_F: Their ids.
            layers: Their states (F, D) in every layer.
        """
        for sums_VD, states_FD in zip(self.sums_LVD, layers, strict=True):
            sums_VD.index_add_(0, ids_F, states_FD.double().add_(_ROUNDER).sub_(_ROUNDER))
        self.counts_V.index_add_(0, ids_F, torch.ones_like(ids_F))

    def check(self) -> None:
        """Stop if a sum may have been rounded.

        Raises:
            DataError: naming the largest sum.
        """
        seen_O = self.counts_V.nonzero().squeeze(1)  # the rest of the table is untouched memory
        by_layer = [sums_VD[seen_O].abs().max() for sums_VD in self.sums_LVD] if len(seen_O) else []
        largest = float(torch.stack(by_layer).max()) if by_layer else 0.0
        if not largest < LIMIT:
            raise DataError(
                f"extraction.averages: a sum reached {largest:.3g}, but sums are exact only below {LIMIT:.3g}. "
                "Lower max_sentences."
            )


def shard_of(sentences: int, block: int, shard: int, shards: int) -> tuple[int, int]:
    """Start and end of shard ``shard`` of ``shards``, counted from 1: whole blocks, nearly equal in number."""
    blocks = -(-sentences // block)
    first, last = ((shard - 1) * blocks // shards, shard * blocks // shards)
    return min(first * block, sentences), min(last * block, sentences)


def sum_states(backbone: PreTrainedModel, text: TokenisedText, block: int, precision: Precision) -> TokenSums:
    """Sum every token's states over ``text``; memory does not grow with the number of sentences."""
    depth, width = backbone.config.num_hidden_layers, backbone.config.hidden_size
    sums = TokenSums.empty(depth + 1, backbone.config.vocab_size, width, backbone.device)
    for _rows, batch, layers in passes(backbone, text, precision, block):
        present_F = batch.mask_BT.flatten().nonzero().squeeze(1)
        states = [states_BTD.flatten(0, 1).index_select(0, present_F) for states_BTD in layers]
        sums.add(batch.ids_BT.flatten()[present_F], states)
    sums.check()
    return sums


def sums_tables(sums: TokenSums) -> Iterator[pa.Table]:
    """Sums of the tokens that occur, slice by slice: columns of ``columns.extraction.TOKEN_SUMS``, ids ascending."""
    layers, vocabulary, width = sums.sums_LVD.shape
    size = max(1, SLICE_BYTES // (layers * width * sums.sums_LVD.itemsize))
    for start in range(0, vocabulary, size):
        ids_O = start + sums.counts_V[start : start + size].nonzero().squeeze(1)
        if len(ids_O):
            values = sums.sums_LVD[:, ids_O].permute(1, 0, 2).reshape(-1, width).cpu().numpy()
            yield _rows(ids_O.cpu().numpy(), sums.counts_V[ids_O].cpu().numpy(), layers, values, TOKEN_SUMS)


def merge(shards: Sequence[pq.ParquetFile]) -> Iterator[pa.Table]:
    """Means over all shards slice by slice: columns of ``columns.extraction.TOKEN_AVERAGES``, ids ascending.

    A slice's sums and one shard's part of them are in memory at a time.

    Args:
        shards: Every shard's sums, columns of ``columns.extraction.TOKEN_SUMS``, in any order.

    Raises:
        DataError: if the corpus is empty.
    """
    slices = _slices(shards)
    if not slices:
        raise DataError("extraction.averages: the dataset has no sentences. Choose another one.")
    for groups in slices:
        first, end = groups[0].first, 1 + max(group.last for group in groups)
        yield _means(first, end, (group.shard.read_row_group(group.number) for group in groups))


class _Group(NamedTuple):
    """A row group and the range of its ids."""

    first: int
    last: int
    shard: pq.ParquetFile
    number: int


def _slices(shards: Sequence[pq.ParquetFile]) -> list[list[_Group]]:
    """Row groups that have ids in common are in one list, no id is in two, and lists ascend."""
    groups = [
        _Group(found.min, found.max, shard, number)
        for shard in shards
        for number in range(shard.num_row_groups)
        for found in [shard.metadata.row_group(number).column(0).statistics]
    ]
    slices: list[list[_Group]] = []
    end = -1
    for group in sorted(groups, key=lambda group: group.first):
        if group.first > end:
            slices.append([])
        slices[-1].append(group)
        end = max(end, group.last)
    return slices


def _means(first: int, end: int, parts: Iterable[pa.Table]) -> pa.Table:
    """Means of the tokens from ``first`` to before ``end`` that occur in some of ``parts``."""
    sums = np.empty((0, 0, 0))
    counts = np.zeros(end - first, dtype=np.int64)
    for part in parts:
        layers, width = 1 + int(_column(part, "layer").max()), len(part["sums"][0])
        if not sums.size:
            sums = np.zeros((len(counts), layers, width))
        places = _column(part, "token_id")[::layers] - first
        sums[places] += _matrix(part, "sums").reshape(len(places), layers, width)
        counts[places] += _column(part, "count")[::layers]
    seen_O = counts.nonzero()[0]
    _, layers, width = sums.shape
    means = (sums[seen_O] / counts[seen_O, None, None]).reshape(-1, width).astype(np.float32)
    return _rows(first + seen_O, counts[seen_O], layers, means, TOKEN_AVERAGES)


def tables_of(averages: pa.Table, vocabulary: int) -> tuple[list[NDArray[np.float32]], NDArray[np.bool_]]:
    """The averages as one table (V, D) per layer, with unseen tokens filled in, and which tokens were seen."""
    layers = 1 + int(_column(averages, "layer").max())
    ids_O = _column(averages, "token_id")[::layers]
    seen_V = np.zeros(vocabulary, dtype=np.bool_)
    seen_V[ids_O] = True
    vectors = _matrix(averages, "vector").reshape(len(ids_O), layers, -1)
    tables = []
    for layer in range(layers):
        table_VD = np.tile(
            vectors[:, layer].mean(axis=0, dtype=np.float64).astype(np.float32), (vocabulary, 1)
        )
        table_VD[ids_O] = vectors[:, layer]
        tables.append(table_VD)
    return tables, seen_V


def _rows(
    ids_O: NDArray[np.int64],
    counts_O: NDArray[np.int64],
    layers: int,
    values: NDArray[np.floating],
    schema: pa.Schema,
) -> pa.Table:
    item = schema.field(3).type.value_type
    offsets = np.arange(len(values) + 1) * values.shape[1]
    columns = [
        pa.array(np.repeat(ids_O, layers), schema.field(0).type),
        pa.array(np.tile(np.arange(layers), len(ids_O)), schema.field(1).type),
        pa.array(np.repeat(counts_O, layers), schema.field(2).type),
        pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(values.ravel(), item)),
    ]
    return pa.table(columns, schema=schema)


def _column(table: pa.Table, name: str) -> NDArray[np.int64]:
    values: NDArray[np.int64] = table[name].to_numpy().astype(np.int64)
    return values


def _matrix(table: pa.Table, name: str) -> NDArray[np.floating]:
    flat = table[name].combine_chunks().flatten().to_numpy()
    matrix: NDArray[np.floating] = flat.reshape(len(table), -1)
    return matrix
