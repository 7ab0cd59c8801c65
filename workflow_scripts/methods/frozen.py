"""An encoder with a readout and without training: the baseline of every method.

Published checkpoints of other methods are also read in this way, each with its authors' readout and prompt.

BERT-whitening (Su et al. 2021, arXiv 2103.15316) maps the vectors linearly:

    y = (x - mu) W,  W = U L^(-1/2),  covariance = U L U^T

mu and covariance are those of the vectors of a text, here of the distinct sentences of a corpus. ASSUME: all of its
dimensions, as in the rows that SimCSE and JTCSE quote, without the reduction that the paper also offers. A direction
in which the text does not vary is left out.

Expected: BERT-base, layers 1 and 12, fitted on NLI: 66.28 over seven STS tasks, RoBERTa-base 61.73 (JTCSE, Table I).
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.arrays import Floats, Vectors
from workflow_scripts.data.published import ALONE, published_modules
from workflow_scripts.errors import DataError
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.devices import granted_device
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.encoding import check_not_collapsed
from workflow_scripts.models.loading import published_class
from workflow_scripts.models.probe import check_large
from workflow_scripts.models.text_encoder import TextEncoder
from workflow_scripts.provenance.artefacts import writing_model_folder
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.methods import Frozen as Config
from workflow_scripts.settings.methods import Whitening
from workflow_scripts.training.data import read_columns


def load(config: Config, folder: Path) -> TextEncoder:
    """Return the encoder of a folder, to evaluate and save.

    Raises:
        ConfigError: if the encoder does not fit the readout.
        DataError: if the folder cannot be loaded.
    """
    if config.readout.kind == "as_published":
        published = published_class()(folder, config.readout)
        published.check()
        return published.eval()
    check_large(folder)
    return build(config, load_tokenizer(folder), load_backbone(folder))


def build(config: Config, tokenizer: PreTrainedTokenizerBase, backbone: PreTrainedModel) -> SentenceEncoder:
    """Return the encoder to evaluate and save, with a readout that pools.

    Raises:
        ConfigError: if the readout needs a pooler and the encoder has none.
    """
    plain = SentenceEncoder(
        backbone, tokenizer, config.readout, head=False, head_at_test=False, template=config.template
    )
    return plain.with_readout(config.readout)


_NO_VARIANCE = 1e-10
"""Fraction of the largest variance below which a direction counts as without variance: float32 noise squared."""


def whitening(vectors_ND: Vectors) -> tuple[Floats, Floats]:
    """Return W, shape (D, D), and mu, shape (D,), in float64; W is 0 for directions without variance."""
    mean_D = vectors_ND.mean(axis=0, dtype=np.float64)
    centred_ND = vectors_ND - mean_D
    variances_D, directions_DD = np.linalg.eigh(centred_ND.T @ centred_ND / max(len(centred_ND) - 1, 1))
    varied_D = variances_D > _NO_VARIANCE * max(variances_D[-1], np.finfo(np.float64).tiny)
    scales_D = np.where(varied_D, 1 / np.sqrt(np.where(varied_D, variances_D, 1)), 0)
    return directions_DD * scales_D, mean_D


def whitened(encoder: SentenceEncoder, texts: Sequence[str], config: Whitening) -> SentenceEncoder:
    """Return the encoder followed by the linear map that whitens its vectors of some texts.

    Raises:
        DataError: if texts are fewer than entries of a vector, for which a covariance has no full rank.
    """
    if len(texts) <= encoder.width:
        problem = f"{len(texts)} distinct sentences for vectors of {encoder.width} entries"
        raise DataError(f"method.whitening: {problem}. Use a larger text, or increase max_sentences.")
    w_DD, mean_D = whitening(encoder.encode(texts, config.max_tokens))
    followed = SentenceEncoder(
        encoder.backbone,
        encoder.tokenizer,
        encoder.readout_settings,
        head=True,
        head_at_test=True,
        template=encoder.template,
        tanh=False,
    )
    assert followed.head is not None
    followed.head.dense.load_state_dict(
        {"weight": torch.from_numpy(w_DD.T.copy()), "bias": torch.from_numpy(-mean_D @ w_DD)}
    )
    return followed.eval()


def other_pooling(config: Config, folder: Path) -> Iterator[str]:
    """Yield a label if the readout's pooling differs from that of the published model."""
    from sentence_transformers.sentence_transformer.modules import Pooling  # slow to import

    for module in [] if config.readout.kind == "as_published" else published_modules(folder)[1:]:
        if module.kind == "Pooling":
            pooling: Any = Pooling.load(str(folder), subfolder=module.path, local_files_only=True)
            modes = [pooling.pooling_mode] if isinstance(pooling.pooling_mode, str) else pooling.pooling_mode
            if [*modes] != [getattr(config.readout, "mode", None)]:
                yield f"the encoder was published with {' and '.join(modes)} pooling, applied by {ALONE}"


def build_frozen(job: Job) -> None:
    """Make a run from an encoder without training, by adding only a readout (rule build_frozen)."""
    config = Config.parse(job.settings["method"], "methods")
    folder = job.input("encoder").parent
    encoder = load(config, folder)
    for path in job.inputs("text"):
        assert isinstance(encoder, SentenceEncoder) and config.whitening
        columns = read_columns(path).values()
        texts = [*dict.fromkeys(chain.from_iterable(zip(*columns, strict=True)))]
        encoder = encoder.to(granted_device(job.operational["gpu"]))
        encoder = whitened(encoder, texts[: config.whitening.max_sentences], config.whitening).cpu()
    check_not_collapsed(encoder)
    record = job.record(labels=[*config.labels, *other_pooling(config, folder)])
    with writing_model_folder(job.outputs["record"].parent, record) as temporary:
        encoder.save(temporary)
