"""Readouts: from an encoder's hidden states to one sentence vector, imported by the name in the configuration.

A readout module has ``Config`` and ``build(config, backbone_config)``, which makes a ``Readout``. As with
methods, a registry that imports them all would make every readout part of every job's code.
"""

import importlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, SerializeAsAny
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedTokenizerBase

from workflow_scripts.config import Slice
from workflow_scripts.errors import ConfigError
from workflow_scripts.models.tokens import TokenBatch


class ReadoutConfig(Slice):
    """Settings of a readout."""

    kind: str

    @property
    def has_head(self) -> bool:
        """Whether SimCSE's MLP head is trained on its vector."""
        return False

    @property
    def labels(self) -> Sequence[str]:
        """What a reader of any number made with it must know."""
        return ()


class Readout(nn.Module):
    """Hidden states to sentence vectors."""

    last_only = False
    """Whether the last hidden state is all that is read, so that no other need be kept."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width  # of the vectors

    def forward(self, hidden_states: Sequence[Tensor], batch: TokenBatch) -> Tensor:
        """Read sentence vectors.

        Args:
            hidden_states: Embedding output and every layer's output, each (B, T, D); with ``last_only``
                the last alone.
            batch: The tokens they are of; every row holds at least one.

        Returns:
            Sentence vectors, shape (B, D), not normalised.
        """
        raise NotImplementedError


class PortableReadout(Readout):
    """A readout whose computation lies in ``models.portable``, so that a model folder can carry it along."""

    def __init__(self, core: nn.Module, settings: Mapping[str, Any], *, last_only: bool = False) -> None:
        super().__init__(core.width)  # type: ignore[arg-type]
        self.core = core
        self.settings = dict(settings)  # what makes the core anew
        self.last_only = last_only

    def forward(self, hidden_states: Sequence[Tensor], batch: TokenBatch) -> Tensor:
        """Read sentence vectors."""
        vectors_BR: Tensor = self.core(hidden_states, batch.ids_BT, batch.mask_BT)
        return vectors_BR


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


def _parsed(block: ReadoutConfig | Mapping[str, Any]) -> ReadoutConfig:
    """Read a readout's settings, whatever its kind.

    Raises:
        ConfigError: if there is no such kind, or a setting is wrong.
    """
    if isinstance(block, ReadoutConfig):
        return block
    config: ReadoutConfig = _module(block.get("kind")).Config.parse(block, "readout")
    return config


AnyReadout = Annotated[SerializeAsAny[ReadoutConfig], BeforeValidator(_parsed)]
"""A field that holds the settings of a readout of any kind."""


def build_readout(config: ReadoutConfig, backbone_config: PretrainedConfig) -> Readout:
    """Make a readout, its parameters drawn afresh.

    Raises:
        ConfigError: if the encoder has no such layers.
    """
    readout: Readout = _module(config.kind).build(config, backbone_config)
    return readout


def _module(kind: object) -> Any:
    name = f"workflow_scripts.models.readouts.{kind}"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:  # something that the readout imports
            raise
        raise ConfigError(
            f"readout.kind: no file workflow_scripts/models/readouts/{kind}.py. Correct `kind`."
        ) from error
