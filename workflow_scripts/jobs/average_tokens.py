"""Average every token's hidden states over a corpus, in every layer (rule average_tokens)."""

from workflow_scripts.columns import SENTENCES, TOKEN_AVERAGES
from workflow_scripts.extraction.averages import sum_states
from workflow_scripts.models.devices import granted_device
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.models.tokens import tokenise
from workflow_scripts.provenance.artefacts import writing_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.extraction import Averages


def average_tokens(job: Job) -> None:
    """Read the corpus, encode it once, write the means."""
    settings = Averages.parse(job.settings["averages"], "extraction.averages")
    table = job.read("sentences", SENTENCES, ["sentence"]).slice(0, settings.max_sentences)
    folder = job.inputs["encoder"].parent
    backbone = load_backbone(folder).to(granted_device(job.operational["gpu"]))  # type: ignore[arg-type]
    text = tokenise(load_tokenizer(folder), table["sentence"].to_pylist(), settings.max_tokens)
    sums = sum_states(backbone, text, settings.block, settings.precision)
    record = job.record(labels=[settings.label])
    with writing_table(job.outputs["averages"], TOKEN_AVERAGES, record, split_bytes=True) as writer:
        for part in sums.means():
            writer.write_table(part)
