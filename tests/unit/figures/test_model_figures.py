"""Jobs of the figures that load models, on models small enough to train on nothing."""

import pyarrow.parquet as pq
import pytest

from tests.jobs import begin_here
from tests.unit.reporting.conftest import drawing, inside
from workflow_scripts.errors import ConfigError
from workflow_scripts.figures.loading import single_encoders
from workflow_scripts.models.encoder import SentenceEncoder, load_backbone, load_tokenizer
from workflow_scripts.models.ensemble import Ensemble
from workflow_scripts.models.folders import save_encoder
from workflow_scripts.provenance.artefacts import job_record, writing_model_folder
from workflow_scripts.settings.readouts import layer_attention, pooling

SENTENCES = ["The old town.", "A king by the river."]
BLOCKS = {
    "layer_attention": {"sentences": SENTENCES, "max_tokens": 32},
    "token_similarity": {
        "runs": ["a.b"], "sentences": SENTENCES, "layer": -1, "unit": "words", "max_tokens": 32,
    },
}  # fmt: skip
READOUTS = {
    "layer_attention": layer_attention.Config(
        kind="layer_attention", pooling="attention_avg", weights="softmax", projection="rrelu",
        embeddings=True, divisor="layers", first_state=0,
    ),
    "token_similarity": pooling.Config(kind="pooling", pooler="avg", layers=None),
}  # fmt: skip


def saved(folder, encoder, tokenizer, seed):
    """The record of a model of run a.b."""
    record = job_record(
        "train_encoder", settings={}, inputs={}, outputs=[], wildcards={"run": "a.b", "seed": seed}
    )
    with writing_model_folder(folder, record) as place:
        save_encoder(place, encoder, tokenizer)
    return folder / "record.json"


def single(tiny_bert, readout):
    head = readout.kind == "layer_attention"
    return SentenceEncoder(load_backbone(tiny_bert), readout, head=head, head_at_test=head)


@pytest.mark.parametrize("figure", BLOCKS)
def test_the_job_draws_every_seed(tiny_bert, tmp_path, figure):
    tokenizer = load_tokenizer(tiny_bert)
    encoder = single(tiny_bert, READOUTS[figure])
    with inside(tmp_path):
        root = tmp_path / "results/lab/runs/a.b"
        models = [saved(root / f"seed{seed}/model", encoder, tokenizer, seed) for seed in "12"]
        begin_here(*drawing(tmp_path / "lab", {figure: (BLOCKS[figure], {"models": models})}))
        drawn = pq.read_table(tmp_path / f"lab/{figure}.parquet")
        assert set(zip(drawn["run"].to_pylist(), drawn["seed"].to_pylist(), strict=True)) == {
            ("a.b", 1),
            ("a.b", 2),
        }


def test_a_run_of_several_encoders_is_refused(tiny_bert, tmp_path):
    member = single(tiny_bert, READOUTS["token_similarity"])
    with inside(tmp_path):
        path = saved(
            tmp_path / "model", Ensemble([member, member], [0.5, 0.5]), load_tokenizer(tiny_bert), "1"
        )
        with pytest.raises(ConfigError, match=r"a\.b holds several encoders"):
            list(single_encoders([path]))
