"""Static token vectors: means of a token's contextual vectors in every layer ("Avg.").

Sums are exact and therefore independent of the order of addition, which a GPU does not guarantee:

* each state is first rounded to a multiple of 2^-24 (half of a float32's last digit at 1; states of 1 and above are
  multiples already, smaller ones change by 3e-8 at most, a tenth of the difference between two kernels);
* float64 represents every multiple of 2^-24 up to 2^29, so no addition rounds while sums stay below it. BERT's most
  frequent token (6.5 million occurrences, entries below 16) stays under 2^27. A larger sum is an error.

ASSUME: the corpus is averaged sentence by sentence, one forward pass each, as everywhere else in this project; the
paper does not say. [CLS], [SEP] and all other ids that occur have a mean, too. A token that never occurs gets the mean
of its layer's means (F4: not stated in the paper); the notes of scores count such tokens.

Shape suffixes: B texts of a batch, V vocabulary, L hidden states from 0, D width, F tokens of a batch end to end, O
tokens that occur.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor
from transformers import PreTrainedModel

from workflow_scripts.columns import SENTENCES, TOKEN_AVERAGES
from workflow_scripts.errors import DataError
from workflow_scripts.extraction.passes import passes
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.devices import granted_device
from workflow_scripts.models.probe import check_large
from workflow_scripts.models.tokens import TokenisedText, tokenise
from workflow_scripts.provenance.artefacts import writing_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.extraction import Averages
from workflow_scripts.settings.names import Precision

_STEP = 2.0**-24
_LIMIT = 2.0**29
_ROUNDER = 1.5 * 2.0**52 * _STEP  # adding and subtracting it rounds to a multiple of _STEP, its last digit
_TOKENS = 1 << 10
"""Number of tokens in a row group of means."""


class TokenSums:
    """Sums of states (L, V, D) and numbers of occurrences (V,), which take L x V x D x 8 bytes."""

    def __init__(self, layers: int, vocabulary: int, width: int, device: torch.device) -> None:
        self._sums_LVD = torch.zeros(layers, vocabulary, width, dtype=torch.float64, device=device)
        self._counts_V = torch.zeros(vocabulary, dtype=torch.int64, device=device)

    def add(self, ids_F: Tensor, layers: Sequence[Tensor]) -> None:
        """Add the states of some tokens.

        Args:
            ids_F: Ids of the tokens.
            layers: Their states (F, D) in every layer.
        """
        for sums_VD, states_FD in zip(self._sums_LVD, layers, strict=True):
            sums_VD.index_add_(0, ids_F, states_FD.double().add_(_ROUNDER).sub_(_ROUNDER))
        self._counts_V.index_add_(0, ids_F, torch.ones_like(ids_F))

    def means(self) -> Iterator[pa.Table]:
        """Yield means of the tokens that occur, in blocks: columns of ``TOKEN_AVERAGES``, ids ascending.

        Raises:
            DataError: if nothing was added, or a sum may have been rounded.
        """
        seen_O = self._counts_V.nonzero().squeeze(1)
        if not len(seen_O):
            raise DataError("extraction.averages: the dataset has no sentences. Choose another dataset.")
        for ids in seen_O.split(_TOKENS):  # type: ignore[no-untyped-call]
            sums_OLD, counts_O = self._sums_LVD[:, ids].permute(1, 0, 2), self._counts_V[ids]
            if not (largest := float(sums_OLD.abs().max())) < _LIMIT:
                problem = f"a sum reached {largest:.3g}, but sums are exact only below {_LIMIT:.3g}"
                raise DataError(f"extraction.averages: {problem}. Reduce max_sentences.")
            yield _rows(ids, counts_O, (sums_OLD / counts_O[:, None, None]).float())


def sum_states(backbone: PreTrainedModel, text: TokenisedText, block: int, precision: Precision) -> TokenSums:
    """Return sums of every token's states over ``text``; memory does not grow with the number of sentences."""
    depth, width = backbone.config.num_hidden_layers, backbone.config.hidden_size
    sums = TokenSums(depth + 1, backbone.config.vocab_size, width, backbone.device)
    for _rows_B, batch, layers in passes(backbone, text, precision, block):
        present_F = batch.packed().places_N
        states = [states_BTD.flatten(0, 1).index_select(0, present_F) for states_BTD in layers]
        sums.add(batch.ids_BT.flatten()[present_F], states)
    return sums


def _rows(ids_O: Tensor, counts_O: Tensor, means_OLD: Tensor) -> pa.Table:
    layers = means_OLD.shape[1]
    vectors = means_OLD.flatten(0, 1).cpu().numpy()
    offsets = np.arange(len(vectors) + 1) * vectors.shape[1]
    columns = [
        pa.array(np.repeat(ids_O.cpu().numpy(), layers), pa.int32()),
        pa.array(np.tile(np.arange(layers), len(ids_O)), pa.int32()),
        pa.array(np.repeat(counts_O.cpu().numpy(), layers)),
        pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(vectors.ravel())),
    ]
    return pa.table(columns, schema=TOKEN_AVERAGES)


def average_tokens(job: Job) -> None:
    """Write the averages of every token's hidden states over a corpus, in every layer (rule average_tokens)."""
    settings = Averages.parse(job.settings["averages"], "extraction.averages")
    table = job.read("sentences", SENTENCES, ["sentence"]).slice(0, settings.max_sentences)
    folder = job.input("encoder").parent
    check_large(folder)
    backbone = load_backbone(folder).to(granted_device(job.operational["gpu"]))  # type: ignore[arg-type]
    text = tokenise(load_tokenizer(folder), table["sentence"].to_pylist(), settings.max_tokens)
    sums = sum_states(backbone, text, settings.block, settings.precision)
    record = job.record(labels=[settings.label])
    with writing_table(job.outputs["averages"], TOKEN_AVERAGES, record, split_bytes=True) as writer:
        for part in sums.means():
            writer.write_table(part)
