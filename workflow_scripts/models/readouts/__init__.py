"""Readouts: from an encoder's hidden states to one sentence vector, imported by the name in the configuration.

This file holds the whole contract: a file of this folder is a ``ReadoutModule``, with a subclass of ``Readout``, its
``Config`` is in the module of its name in ``settings/readouts``, and any method can use it. As with methods, a registry
that imports them all would make every readout part of every job's code.
"""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedTokenizerBase

from workflow_scripts.errors import ConfigError
from workflow_scripts.models.packed import Reads
from workflow_scripts.models.tokens import TokenBatch
from workflow_scripts.settings.readouts import ReadoutConfig
from workflow_scripts.settings.start import Size, Start


class Readout(nn.Module):
    """Hidden states to sentence vectors.

    Parameters and buffers are trained and saved with the encoder, whatever they are. A vector must not depend on
    padding or on other sentences of its batch, unless ``labels`` says so. A buffer named ``mask_id`` is told
    which token the mask is (``set_mask_token``).
    """

    reads: Reads = "all"
    """The hidden states that it needs; whatever is not asked for need not be computed or kept."""
    reads_rows_apart: bool = True
    """Whether other sentences in a batch change nothing of a vector in training either, nor of what is drawn for it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width  # R, of the vectors; a head brings them back to the encoder's D

    def forward(self, hidden_states: Sequence[Tensor], batch: TokenBatch) -> Tensor:
        """Read sentence vectors.

        Args:
            hidden_states: Those that ``reads`` asks for, each (B, T, D), or (B, 1, D) of the first token;
                unless it asks for them, states of padding are arbitrary, though finite.
            batch: The tokens they are of; every row holds at least one.

        Returns:
            Sentence vectors, shape (B, R), not normalised.
        """
        raise NotImplementedError

    def sentence_modules(self) -> Sequence[nn.Module]:
        """The readout as modules of sentence-transformers, for model folders that load without this project.

        None here: ``SentenceTransformer`` then needs Semblance to load the folder of a readout of this kind.
        """
        return ()


class ReadoutModule(Protocol):
    """A module of this folder."""

    @property
    def Config(self) -> type[ReadoutConfig]:  # noqa: N802
        """The class of its settings."""

    def build(self, config: Any, backbone_config: PretrainedConfig) -> Readout:
        """Make the readout, its parameters drawn afresh, for an encoder that has what its settings ask for."""


class PortableReadout(Readout):
    """A readout whose computation is in ``models.portable``, whose files a model folder carries along."""

    def __init__(self, core: nn.Module, settings: Mapping[str, Any], reads: Reads = "all") -> None:
        super().__init__(core.width)  # type: ignore[arg-type]
        self.core = core
        self.settings = dict(settings)  # what makes the core anew
        self.reads = reads

    def forward(self, hidden_states: Sequence[Tensor], batch: TokenBatch) -> Tensor:
        """Read sentence vectors."""
        vectors_BR: Tensor = self.core(hidden_states, batch.ids_BT, batch.mask_BT)
        return vectors_BR

    def portable_class(self) -> Any:
        """The subclass of ``portable.readout_module.ReadoutModule`` for its core; imported when a folder is written."""
        raise NotImplementedError

    def sentence_modules(self) -> Sequence[nn.Module]:
        """Core and weights in that class."""
        made = self.portable_class()(self.settings)
        made.core.load_state_dict(self.core.state_dict())
        return [made.eval()]


def draw_linear_layers(module: nn.Module) -> None:
    """Draw the weights of its linear layers from N(0, 0.02), and set their biases to 0.

    That is what ``init_weights`` of BERT and RoBERTa does, which SimCSE's code calls for whatever it puts on top, and
    the codes of S2Sent and LayerAttPooler with it. PyTorch's own weights are ten times as wide at width 768, and gates
    that start from them differ among features where these hardly do.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.02)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def set_mask_token(module: nn.Module, tokenizer: PreTrainedTokenizerBase) -> None:
    """Tell every readout of ``module`` that asks which token the mask is; a model folder keeps it.

    Raises:
        ConfigError: if the tokeniser has none.
    """
    for name, buffer in module.named_buffers():
        if name.rsplit(".", 1)[-1] == "mask_id":
            if tokenizer.mask_token_id is None:
                raise ConfigError("readout: it reads [MASK], and the tokeniser has no mask. Choose another.")
            buffer.fill_(int(tokenizer.mask_token_id))


def build_readout(config: ReadoutConfig, backbone_config: PretrainedConfig) -> Readout:
    """Make a readout, its parameters drawn afresh.

    Raises:
        ConfigError: if the encoder lacks what the settings ask for.
    """
    size = Size(backbone_config.num_hidden_layers, backbone_config.hidden_size)
    for misfit in config.misfits(Start(sizes=[size])):
        raise ConfigError(misfit)
    return _module(config.kind).build(config, backbone_config)


def _module(kind: object) -> ReadoutModule:
    name = f"workflow_scripts.models.readouts.{kind}"
    try:
        module: ReadoutModule = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:  # something that the readout imports
            raise
        raise ConfigError(
            f"readout.kind: no file workflow_scripts/models/readouts/{kind}.py. Correct `kind`."
        ) from error
    return module
