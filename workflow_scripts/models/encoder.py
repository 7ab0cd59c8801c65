"""Single sentence encoder: any backbone of Transformers, a readout, and an optional MLP head.

Shape suffixes: B sentences, T tokens, R width of the readout's vector, D width of the backbone.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.errors import ConfigError
from workflow_scripts.models.backbone import (
    check_fit,
    hidden_states,
    load_backbone,
    load_tokenizer,
    pooler_of,
)
from workflow_scripts.models.dropout import DropoutMasks, patched_dropout
from workflow_scripts.models.encoding import encode_sentences
from workflow_scripts.models.folders import (
    HEAD_FILE,
    READOUT_FOLDER,
    SavedEncoder,
    read_settings,
    transformer_module,
    write_settings,
    write_with_sentence_transformers,
)
from workflow_scripts.models.readouts import build_readout, draw_linear_layers, set_mask_token
from workflow_scripts.models.text_encoder import TextEncoder
from workflow_scripts.models.tokens import Packing, TokenBatch
from workflow_scripts.settings.names import Template
from workflow_scripts.settings.readouts import ReadoutConfig

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer  # slow to import


class Head(nn.Module):
    """Linear and tanh on the sentence vector, started from scratch (SimCSE, cl_init); or only a linear map."""

    def __init__(self, read_width: int, width: int, *, tanh: bool = True) -> None:
        super().__init__()
        self.dense = nn.Linear(read_width, width)
        self.activation: nn.Module = nn.Tanh() if tanh else nn.Identity()
        draw_linear_layers(self)

    def forward(self, vectors_xR: Tensor) -> Tensor:
        """Map vectors to width D, with tanh to entries in (-1, 1), in float32 or more precisely."""
        with torch.autocast(vectors_xR.device.type, enabled=False):
            return self.activation(self.dense(vectors_xR))  # type: ignore[no-any-return]


class SentenceEncoder(TextEncoder):
    """Backbone, readout and head; the head runs in training and, if ``head_at_test``, at test.

    With a ``template``, callers must tokenise sentences inside it (``templates.tokenise_in``).

    Raises:
        ConfigError: if the backbone or the tokeniser does not fit the readout's settings.
    """

    def __init__(
        self,
        backbone: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        readout: ReadoutConfig,
        *,
        head: bool,
        head_at_test: bool,
        template: Template | None = None,
        tanh: bool = True,
    ) -> None:
        super().__init__()
        check_fit(readout.size_errors, backbone)
        self.backbone = backbone
        self.tokenizer = tokenizer
        self.readout_settings = readout
        self.readout = build_readout(readout, backbone.config)
        set_mask_token(self.readout, tokenizer, template)
        self.template = template
        self.head = Head(self.readout.width, backbone.config.hidden_size, tanh=tanh) if head else None
        self.head_at_test = head and head_at_test
        self.width = int(backbone.config.hidden_size) if self.head_at_test else self.readout.width

    @property
    def backbones(self) -> list[PreTrainedModel]:
        """Return the encoder's only backbone."""
        return [self.backbone]

    def with_readout(self, readout: ReadoutConfig, *, keep_prompt: bool = True) -> "SentenceEncoder":
        """Return an encoder of the same backbone with another readout; of heads, only the pooler stays."""
        head = readout.kind == "pooling" and readout.has_head
        template = self.template if keep_prompt else None
        other = SentenceEncoder(
            self.backbone, self.tokenizer, readout, head=head, head_at_test=head, template=template
        )
        if other.head is not None:
            other.head.dense.load_state_dict(self.own_pooler().state_dict())
        return other

    def own_pooler(self) -> nn.Linear:
        """Return the pooler's linear map: that of the trained head or, without one, the backbone's own.

        BERT's pooler and SimCSE's head have the same form, and official checkpoints store the head as the pooler.

        Raises:
            ConfigError: if the encoder has neither.
        """
        trained = self.head is not None and isinstance(self.head.activation, nn.Tanh)
        pooler = self.head if trained else pooler_of(self.backbone)
        if pooler is None:
            raise ConfigError("readout.pooler: cls: the encoder has no pooler. Use cls_before_pooler.")
        dense = pooler.get_submodule("dense")
        assert isinstance(dense, nn.Linear)
        return dense

    def forward(self, ids_BT: Tensor, mask_BT: Tensor, packing: Packing | None = None) -> Tensor:
        """Return embeddings of the tokens of a batch (``models.tokens.TokenBatch``), (B, D), not normalised."""
        return self.project(self.read(TokenBatch(ids_BT, mask_BT, packing)))

    def read(self, batch: TokenBatch, positions_BT: Tensor | None = None) -> Tensor:
        """Return sentence vectors before the head, shape (B, R); ``positions_BT`` replace positions 0, 1, 2, ..."""
        masks = DropoutMasks(batch.packed()) if self.training else None
        states = hidden_states(self.backbone, batch, self.readout.reads, positions_BT, masks)
        with patched_dropout(masks):
            vectors_BR = self.readout.read(states, batch.ids_BT, batch.mask_BT)
        return vectors_BR.to(torch.promote_types(vectors_BR.dtype, torch.float32))

    def project(self, vectors_xR: Tensor) -> Tensor:
        """Return vectors, of any leading shape, after the head if it is used in this mode."""
        if self.head is not None and (self.training or self.head_at_test):
            return self.head(vectors_xR)  # type: ignore[no-any-return]
        return vectors_xR

    def encode(self, sentences: Sequence[str], max_tokens: int) -> NDArray[np.float32]:
        """Return embeddings of sentences, (N, D) (``TextEncoder.encode``)."""
        return encode_sentences(self, sentences, max_tokens)

    def save(self, folder: Path) -> None:
        """Write weights, settings and modules of sentence-transformers."""
        write_with_sentence_transformers(folder, self.sentence_transformer(folder))

    def sentence_transformer(self, folder: Path) -> "SentenceTransformer":
        """Write the files of this pipeline's loader, and return the model that writes the others."""
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.base.modules import Dense

        folder.mkdir(exist_ok=True)
        self.tokenizer.save_pretrained(folder)
        saved = SavedEncoder(
            readout=self.readout_settings,
            head_at_test=self.head_at_test,
            template=self.template,
            tanh=self.head is None or isinstance(self.head.activation, nn.Tanh),
        )
        write_settings(folder, saved)
        following = [*self.readout.sentence_modules(self.backbone.config.num_hidden_layers)]
        if self.head is not None:
            save_file(self.head.state_dict(), folder / HEAD_FILE)
            if self.head_at_test:
                dense = Dense(self.readout.width, self.width, activation_function=self.head.activation)
                dense.linear.load_state_dict(self.head.dense.state_dict())
                following.append(dense)
        several = self.readout.reads in ("all", "padded")
        first = transformer_module(folder, self.backbone, self.tokenizer, self.template, following, several)
        return SentenceTransformer(modules=[first, *following], device="cpu")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return the encoder in a folder that ``save`` wrote."""
        settings = read_settings(folder)
        encoder = cls(
            load_backbone(folder),
            load_tokenizer(folder),
            settings.readout,
            head=(folder / HEAD_FILE).exists(),
            head_at_test=settings.head_at_test,
            template=settings.template,
            tanh=settings.tanh,
        )
        if encoder.head is not None:
            encoder.head.load_state_dict(load_file(folder / HEAD_FILE))
        encoder.readout.load_weights(folder / READOUT_FOLDER)
        return encoder
