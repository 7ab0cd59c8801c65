"""A prompt's own masks are told by their places: a sentence may have the tokeniser's mask, too."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from tests.support import toys
from workflow_scripts.errors import ConfigError
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.settings.methods import read_method
from workflow_scripts.settings.names import Template
from workflow_scripts.settings.readouts import MaskToken, S2Sent

TEXTS = ["the {0} of the town", "{0}", "{0} the river {0}", "an old king of the north", "a {0}."]
PROMPTS = {  # text, and the own masks as slices of all masks of a filled prompt
    "after": ("the book : [X] is [MASK]", slice(-1, None)),
    "before": ("[MASK] is the book of [X]", slice(0, 1)),
    "both sides": ("[MASK] : [X] is [MASK] and [MASK]", None),
}
SELECTOR = {
    "kind": "s2sent", "blocks": 1, "last_block": True, "fusion": "average", "pooling": "mask", "squeeze": "gap",
    "frequencies": 1, "frequency_set": "figure", "dct": "mean", "reduction": 2, "activation": "relu", "bias": True,
    "batch_norm": False, "gate": "softmax",
}  # fmt: skip
READOUTS = {"mask_token": MaskToken(kind="mask_token"), "s2sent": S2Sent.model_validate(SELECTOR)}


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("readout", READOUTS)
def test_only_the_masks_of_the_prompt_are_read(tiny_models, tmp_path, kind, prompt, readout):
    """Transformers, one text on its own, and a selector of one branch, which is the identity."""
    text, own = PROMPTS[prompt]
    tokenizer, backbone = load_tokenizer(tiny_models[kind]), load_backbone(tiny_models[kind])
    template = Template(text=text, add_period=False)
    encoder = SentenceEncoder(
        backbone, tokenizer, READOUTS[readout], head=False, head_at_test=False, template=template
    )
    texts = [text.format(tokenizer.mask_token) for text in TEXTS]
    expected = [states_of(backbone, tokenizer, template, text, own) for text in texts]
    np.testing.assert_allclose(encoder.eval().encode(texts, 32), expected, atol=1e-5)
    toys.save(tmp_path / "model", encoder)
    np.testing.assert_allclose(load_encoder(tmp_path / "model").encode(texts, 32), expected, atol=1e-5)
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu", trust_remote_code=True)
    np.testing.assert_allclose(theirs.encode(texts), expected, atol=1e-5)


def states_of(backbone, tokenizer, template, text, own):
    """Mean state of the prompt's own masks, by hand."""
    before, after = template.sides(tokenizer.mask_token)
    tokens = tokenizer(f"{before}{text}{after}", return_tensors="pt")
    (places,) = (tokens.input_ids[0] == tokenizer.mask_token_id).nonzero(as_tuple=True)
    places = torch.cat([places[:1], places[-2:]]) if own is None else places[own]
    with torch.inference_mode():
        states = backbone(tokens.input_ids, attention_mask=tokens.attention_mask).last_hidden_state[0]
    return states[places].mean(dim=0).numpy()


def test_templates_with_masks_on_different_sides_are_refused():
    from tests.support import small_methods

    block = small_methods.blocks()["promptbert"]
    moved = {"text": "[MASK] : [X]", "add_period": False}
    found = r"templates\.0: 1 masks before the sentence and 0 after it; test_template has 0 and 1"
    with pytest.raises(ConfigError, match=found):
        read_method(block | {"templates": [moved, block["templates"][1]]}, "methods")
