"""Encoding 600 sentences, a third of them repeats as in an STS suite, against sentence-transformers."""

import argparse

import numpy as np
import sentence_transformers as st
import torch

from benchmarks.material import interleaved, minilm, wikipedia_sentences
from workflow_scripts.evaluation.embeddings import embed
from workflow_scripts.models.encoder import SentenceEncoder, load_backbone, load_tokenizer
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.readouts import pooling as pooling_readout

MAX_TOKENS = 128


def main() -> None:
    """Encode in turns, check that the vectors agree, print the ratio."""
    torch.set_num_threads(2)
    sentences = wikipedia_sentences(400)
    asked = sentences + sentences[:200]
    tokenizer = load_tokenizer(minilm())
    encoder = SentenceEncoder(
        load_backbone(minilm()),
        pooling_readout.Config(kind="pooling", pooler="avg", layers=None),
        head=False,
        head_at_test=False,
    )
    peer = st.SentenceTransformer(str(minilm()), device="cpu")
    peer.max_seq_length = MAX_TOKENS
    mine = embed(lambda texts: encode(encoder, tokenizer, texts, MAX_TOKENS), asked)[asked]
    mine /= np.linalg.norm(mine, axis=1, keepdims=True)
    assert np.abs(mine - peer.encode(asked, normalize_embeddings=True)).max() < 1e-5
    for name, texts in {"encode_unique": sentences, "encode_with_repeats": asked}.items():
        ours, theirs = interleaved(
            lambda texts=texts: embed(lambda t: encode(encoder, tokenizer, t, MAX_TOKENS), texts),
            lambda texts=texts: peer.encode(texts, show_progress_bar=False),
            repeats=1,
        )
        print(f"bench {name} {theirs / ours:.2f} times-as-fast semblance-against-sentence-transformers")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
