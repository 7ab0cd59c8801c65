"""SimCSE on pairs: a sentence's positive is its partner in the corpus, such as its round-trip translation.

EDFSE and the sub-encoders of TNCSE and JTCSE (their first stage): the loss and head of unsupervised SimCSE, with
another text as the second view. Both texts have dropout and go through the encoder in one call. For a corpus of the
form sentences, round trips with or without their originals, use ``simcse`` itself.
"""

from workflow_scripts.training.contrastive import Objective, build

__all__ = ["Objective", "build"]
