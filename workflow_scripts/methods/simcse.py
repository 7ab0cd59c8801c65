"""Unsupervised SimCSE: a sentence's two dropout views are each other's positive.

Gao et al. 2021, https://arxiv.org/abs/2104.08821; settings of the official code. Both views go through
the encoder in one call. With the pooler ``cls`` an MLP head is trained on top; the paper drops it at
test (``head_at_test: false``). With the readout ``s2sent`` this is S2Sent's first baseline and method, with
``layer_attention`` LayerAttPooler's Equation 7.

Expected: BERT-base on a million Wikipedia sentences, seven STS tasks, 73.5 to 76.3 depending on the
seed (the paper prints 76.25); about 1.5 hours on one GPU. The laboratory's figures are in
``resources/laboratory``.
"""

from workflow_scripts.methods.contrastive import Objective as Objective
from workflow_scripts.methods.contrastive import build as build
