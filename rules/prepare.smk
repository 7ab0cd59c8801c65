"""From datasets of sentences or triples to corpora.

Inputs:  <results>/datasets/{dataset}.parquet
Outputs: <results>/corpora/{corpus}/{train,dev,words}.parquet
"""


rule split_corpus:
    """Training text, and held-out text as pairs for choosing checkpoints."""
    input:
        sentences=filled(config, "corpora.{corpus}", "<results>/datasets/{dataset}.parquet"),
        also=filled(config, "corpora.{corpus}", "<results>/datasets/{also}.parquet"),
        code=code_of("split_corpus"),
    output:
        train="<results>/corpora/{corpus}/train.parquet",
        dev="<results>/corpora/{corpus}/dev.parquet",
    log:
        "<logs>/split_corpus/{corpus}.log",
    benchmark:
        "<benchmarks>/split_corpus/{corpus}.tsv"
    wildcard_constraints:
        corpus=one_of(CORPORA.cut),
    resources:
        **REQUESTS.of("split_corpus"),
    params:
        **call("split_corpus", config_slice(config, corpus="corpora.{corpus}")),
    shell:
        command("split_corpus")


rule count_words:
    """Word frequencies of the training text."""
    input:
        sentences="<results>/corpora/{corpus}/train.parquet",
        code=code_of("count_words"),
    output:
        counts="<results>/corpora/{corpus}/words.parquet",
    log:
        "<logs>/count_words/{corpus}.log",
    benchmark:
        "<benchmarks>/count_words/{corpus}.tsv"
    resources:
        **REQUESTS.of("count_words"),
    params:
        **call("count_words", config_slice(config, words="words")),
    shell:
        command("count_words")
