import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import ElectraConfig, ElectraModel

from tests.support import toys
from workflow_scripts.models.backbone import load_tokenizer
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.models.readouts.pooling import pool
from workflow_scripts.settings.readouts import Pooling as PoolingSettings


def pooling(pooler, layers=None):
    return PoolingSettings(kind="pooling", pooler=pooler, layers=layers)


MASK = torch.tensor([[1, 1, 1], [1, 1, 0]])


def test_means_count_every_token_and_no_padding_worked_by_hand():
    last = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 9.0]], [[1.0, 0.0], [2.0, 6.0], [99.0, 99.0]]])
    pooled = pool([last], MASK, pooling("avg"))
    torch.testing.assert_close(pooled, torch.tensor([[3.0, 5.0], [1.5, 3.0]]))


def test_first_and_last_are_layer_1_and_the_last_by_hand():
    """O-08: layer 0, which one paper's 56.70 takes for the first, gives another vector than layer 1, which gives 60.73."""
    h0 = torch.full((1, 3, 2), 9.0)  # [CLS] a [SEP]
    h1, last = torch.tensor([[[0.0, 6], [3, 0], [0, 0]]]), torch.tensor([[[3.0, 0], [0, 3], [0, 0]]])
    mask = torch.ones(1, 3, dtype=torch.int64)

    def pooled(*layers):
        return pool([h0, h1, last], mask, pooling("avg", layers)).tolist()

    assert pooled(1, -1) == [[1.0, 1.5]]
    assert pooled(0, -1) == [[5.0, 5.0]]


MODES = {
    "cls_before_pooler": "cls",
    "avg": "mean",
    "last_token": "lasttoken",
}
TEXTS = [*toys.sentences(5, seed=3), "x"]


@pytest.fixture(scope="module")
def folders(tiny_models, tmp_path_factory):
    """A packed encoder, one that Transformers computes, and a causal decoder."""
    padded = tmp_path_factory.mktemp("padded")
    tokenizer, sizes = toys.make_tokenizer("bert"), {"num_hidden_layers": 2, "num_attention_heads": 4}
    torch.manual_seed(0)
    config = ElectraConfig(vocab_size=len(tokenizer), hidden_size=toys.WIDTH, intermediate_size=48, **sizes)
    ElectraModel(config).save_pretrained(padded)
    tokenizer.save_pretrained(padded)
    decoder = toys.write_model(tmp_path_factory.mktemp("decoder"), "llama")
    return {"packed": tiny_models["bert"], "padded": padded, "decoder": decoder}


@pytest.mark.parametrize("layers", [None, (0, 0, -1)])
@pytest.mark.parametrize(
    ("kind", "pooler"),
    [(kind, pooler) for kind in ("packed", "padded") for pooler in MODES]
    + [("decoder", pooler) for pooler in MODES if pooler != "cls_before_pooler"],
)
def test_each_pooling_is_that_of_sentence_transformers(folders, tmp_path, kind, pooler, layers):
    """One text of one word, so that there is padding."""
    encoder, tokenizer = toys.encoder(folders[kind], pooler, layers), load_tokenizer(folders[kind])
    vectors = encoder.encode(TEXTS, 64)
    tokens = tokenizer(TEXTS, padding=True, return_tensors="pt")
    assert not tokens.attention_mask.all()
    with torch.inference_mode():
        found = encoder.backbone(
            tokens.input_ids, attention_mask=tokens.attention_mask, output_hidden_states=True
        )
        chosen = torch.stack([found.hidden_states[index] for index in layers or (-1,)]).mean(dim=0)
        theirs = Pooling(toys.WIDTH, pooling_mode=MODES[pooler])(
            {"token_embeddings": chosen, "attention_mask": tokens.attention_mask}
        )
    np.testing.assert_allclose(vectors, theirs["sentence_embedding"].numpy(), atol=1e-5)
    if kind != "decoder":
        return  # saved alike (test_folders has cls)
    toys.save(tmp_path / "model", encoder)
    saved = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    np.testing.assert_allclose(saved.encode(TEXTS, batch_size=4), vectors, atol=1e-5)
    np.testing.assert_allclose(load_encoder(tmp_path / "model").encode(TEXTS, 64), vectors, atol=1e-5)
