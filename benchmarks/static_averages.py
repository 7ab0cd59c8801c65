"""Summing every token's states in every layer, exactly, against the bare forward pass over the same sentences."""

import argparse

import torch

from benchmarks.material import interleaved, minilm, wikipedia_sentences
from workflow_scripts.extraction.averages import sum_states
from workflow_scripts.extraction.forward import passes
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.models.tokens import tokenise

SENTENCES = 1000
BLOCK = 500


def main() -> None:
    """Pass the same blocks in turns, with and without sums, print the share that sums add."""
    torch.set_num_threads(2)
    backbone = load_backbone(minilm())
    text = tokenise(load_tokenizer(minilm()), wikipedia_sentences(SENTENCES), 128)

    def bare() -> None:
        for _states in passes(backbone, text, "float32", BLOCK):
            pass

    ours, peer = interleaved(lambda: sum_states(backbone, text, BLOCK, "float32"), bare, repeats=2)
    print(
        f"bench static_averages {ours / peer:.2f} times-the-time sums-of-all-layers-against-the-bare-forward-pass"
    )


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
