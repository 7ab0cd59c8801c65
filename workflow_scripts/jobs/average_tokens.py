"""Sum every token's hidden states over one shard of a corpus, exactly (rule average_tokens)."""

from workflow_scripts.columns.corpora import SENTENCES
from workflow_scripts.errors import one_line_errors
from workflow_scripts.extraction.averages import Averages, shard_of, sum_states, sums_table
from workflow_scripts.extraction.forward import usable_device
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.models.tokens import tokenise
from workflow_scripts.provenance.artefacts import check_model_folder, read_table, write_table
from workflow_scripts.provenance.job import parse_job


def main() -> None:
    """Read a range of whole blocks, encode it once, write the sums."""
    job = parse_job(
        "average_tokens",
        __doc__,
        wildcards=["scatteritem"],
        inputs=["encoder", "sentences"],
        outputs=["sums"],
    )
    settings = Averages.parse(job.settings["averages"], "extraction.averages")
    shard, shards = map(int, job.wildcards["scatteritem"].split("-of-"))
    table = read_table(job.inputs["sentences"], SENTENCES, ["sentence"]).slice(0, settings.max_sentences)
    first, end = shard_of(len(table), settings.block, shard, shards)
    sentences = table["sentence"].slice(first, end - first).to_pylist()
    folder = job.inputs["encoder"].parent
    check_model_folder(folder)
    backbone = load_backbone(folder).to(usable_device())  # type: ignore[arg-type]
    text = tokenise(load_tokenizer(folder), sentences, settings.max_tokens)
    sums = sum_states(backbone, text, settings.block, settings.precision)
    record = job.record(labels=[settings.label] if settings.label else [])
    write_table(job.outputs["sums"], sums_table(sums), record)


if __name__ == "__main__":
    with one_line_errors():
        main()
