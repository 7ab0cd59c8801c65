"""SimCSE on pairs: a sentence's positive is its partner in the corpus, such as its round-trip translation.

EDFSE and the sub-encoders of TNCSE and JTCSE (their first stage): the loss and head of unsupervised SimCSE, the
second view made of another text. Both texts are seen under dropout and go through the encoder in one call.
A corpus of the form sentences, round trips alone or beside what they came from, is for ``simcse`` itself.
"""

from workflow_scripts.training.contrastive import Objective, build

__all__ = ["Objective", "build"]
