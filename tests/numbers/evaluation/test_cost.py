from types import SimpleNamespace

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertModel

from tests.support import toys
from workflow_scripts.evaluation import cost
from workflow_scripts.evaluation.cost import count, evaluate, run_backbone, time_against_base
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.settings.readouts import Pooling
from workflow_scripts.settings.suites import Cost as Config


def bert(**settings):
    with torch.device("meta"):
        return BertModel(BertConfig(), **settings)


class Twin(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub_encoders = nn.ModuleList([bert(), bert()])

    def forward(self, ids):
        return sum(model(input_ids=ids).last_hidden_state for model in self.sub_encoders)


def run(model):
    return lambda ids, mask: model(input_ids=ids)  # a mask of meta tensors cannot be read


def test_counts_of_bert_and_twins_are_those_of_the_papers():
    """O-34 and O-50."""
    assert count(bert(), run(bert()), 64).parameters == 0  # of another model's pass
    whole = bert()
    assert count(whole, run(whole), 64).parameters == 109_482_240
    model = bert(add_pooling_layer=False)
    config = Config(tokens=64, batch_sizes=[1], repeats=1, warmup=0)
    twin = Twin()
    found = evaluate(config, (twin, lambda ids, mask: twin(ids)), (model, run(model)))
    scores = {(score.aggregation, score.metric): score.value for score in found}
    assert scores["", "parameters"] == 218_964_480
    assert scores["base", "gmac_linear"] == pytest.approx(5.435817984)
    # attention adds two products of tokens by tokens
    assert scores["base", "gmac_total"] == pytest.approx(5.435817984 + 12 * 2 * 64 * 64 * 768 / 1e9)
    assert scores["", "added_parameters_percent"] == pytest.approx(100 * (218_964_480 / 108_891_648 - 1))
    assert found == evaluate(config, (twin, lambda ids, mask: twin(ids)), (model, run(model)))


@pytest.mark.parametrize("head_at_test", [True, False])
def test_a_head_counts_only_if_it_is_used_at_test(tiny_bert, head_at_test):
    backbone, tokenizer = load_backbone(tiny_bert), load_tokenizer(tiny_bert)
    readout = Pooling(kind="pooling", pooler="cls_before_pooler", layers=None)
    encoders = [
        SentenceEncoder(backbone, tokenizer, readout, head=head, head_at_test=head_at_test).eval()
        for head in (True, False)
    ]
    with_head, without = (count(encoder, encoder, 8) for encoder in encoders)
    width = backbone.config.hidden_size
    assert with_head.parameters - without.parameters == (width * width + width) * head_at_test
    assert with_head.linear - without.linear == width * width * head_at_test


@pytest.mark.parametrize("kind", ["bert", "roberta", "mpnet", "llama"])
def test_attention_is_counted_in_every_family(tmp_path, kind):
    """Each of two products of tokens by tokens, in each of two layers."""
    backbone = load_backbone(toys.write_model(tmp_path / kind, kind))
    found = count(backbone, lambda ids, mask: run_backbone(backbone, ids, mask), 16)
    assert found.linear > 0
    assert found.total - found.linear == toys.DEPTH * 2 * 16 * 16 * toys.WIDTH


def test_a_batch_is_timed_in_turns_with_the_base_encoder(monkeypatch):
    """The clock advances only in forward passes, ten times as far during the warm-up."""
    clock, calls, layer = SimpleNamespace(seconds=0.0), [], nn.Linear(2, 2)
    monkeypatch.setattr(cost, "time", SimpleNamespace(perf_counter=lambda: clock.seconds))

    def timed(seconds):
        def forward(ids, mask):
            clock.seconds += seconds * (10 if len(calls) % 10 < 6 else 1)
            calls.append((seconds, tuple(ids.shape)))

        return layer, forward

    config = Config(tokens=8, batch_sizes=[1, 4], repeats=2, warmup=3)
    scores = time_against_base(config, timed(0.03), timed(0.01))
    turns = [{*calls[start : start + 2]} for start in range(0, 20, 2)]
    assert turns == [{(0.03, (size, 8)), (0.01, (size, 8))} for size in (1, 4) for _ in range(5)]
    assert calls[0] != calls[2]  # neither is always the first
    found = {(score.aggregation, score.metric): score.value for score in scores}
    for batch, throughput in (("batch:1", 100 / 3), ("batch:4", 400 / 3)):
        values = {"latency_ratio": 3, "latency_ms": 30, "base_latency_ms": 10, "added_latency_percent": 200}
        values |= {"sentences_per_second": throughput}
        assert {metric: found[batch, metric] for metric in values} == pytest.approx(values)
