"""From datasets of sentences or triples to corpora."""

split_corpus = JobSpec(
    "data.corpora.split_corpus",
    settings=config_settings(corpus="corpora.{corpus}"),
    outside=lambda w: f"corpora.{w.corpus}" if needs.added_to(SETTINGS, w.corpus) else "",
)


rule split_corpus:
    """Split a corpus into training text and held-out text, as pairs that select checkpoints."""
    input:
        sentences=path_if_set("<results>/datasets/{dataset}.parquet", setting("corpora.{corpus}")),
        added=path_if_set("<results>/datasets/{add_sentences_of}.parquet", setting("corpora.{corpus}")),
        code=split_corpus.code,
    output:
        train="<results>/corpora/{corpus}/train.parquet",
        dev="<results>/corpora/{corpus}/dev.parquet",
    log:
        "<logs>/split_corpus/{corpus}.log",
    benchmark:
        "<benchmarks>/split_corpus/{corpus}.tsv"
    wildcard_constraints:
        corpus=name_pattern(blocks_with(SETTINGS.corpora, "dataset")),
    resources:
        **job_resources(gigabytes=4, minutes=15),
    params:
        **split_corpus.params,
    message:
        "Make corpus {wildcards.corpus}; log: {log}"
    shell:
        split_corpus.shell


count_words = JobSpec(
    "data.words.count_words",
    settings=config_settings(words="words"),
)


rule count_words:
    """Count the words of the training text."""
    input:
        sentences="<results>/corpora/{corpus}/train.parquet",
        code=count_words.code,
    output:
        counts="<results>/corpora/{corpus}/words.parquet",
    log:
        "<logs>/count_words/{corpus}.log",
    benchmark:
        "<benchmarks>/count_words/{corpus}.tsv"
    resources:
        **job_resources(gigabytes=4, minutes=15),
    params:
        **count_words.params,
    message:
        "Count the words of corpus {wildcards.corpus}; log: {log}"
    shell:
        count_words.shell
