"""Map one run's attention: weights over configured sentences, energy of [CLS] (rule map_attention)."""

from workflow_scripts.data.tables import read_dataset_table, texts_of
from workflow_scripts.errors import ConfigError
from workflow_scripts.evaluation import attention
from workflow_scripts.evaluation.base import gap, score_table
from workflow_scripts.models.folders import load_encoder
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.suites import Attention as Config


def map_attention(job: Job) -> None:
    """Average the energy over a dataset's sentences, draw the maps, write."""
    config = Config.parse(job.settings["suite"], f"suites.attention.{job.wildcards['suite']}")
    encoder, tokenizer = load_encoder(job.inputs["model"].parent)
    if encoder.tokenizers:
        raise ConfigError(
            f"suites: {job.wildcards['run']} joins encoders of several tokenisers. Leave attention out of its grid."
        )
    sentences = list(dict.fromkeys(texts_of(read_dataset_table(job.inputs["dataset"]))))
    backbones = [leaf.backbone for leaf in encoder.leaves]
    if sentences:
        scores = attention.cls_energy(backbones, tokenizer, sentences, config.energy)
    else:
        scores = [gap(config.energy.dataset, "no source of the dataset is available")]
    maps = attention.attention_maps(backbones, tokenizer, config.maps)
    job.write({"scores": score_table(scores, **job.wildcards), "maps": maps})
