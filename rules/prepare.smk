"""From datasets of sentences or triples to corpora."""


rule split_corpus:
    """Training text, and held-out text as pairs for choosing checkpoints."""
    input:
        sentences=filled("<results>/datasets/{dataset}.parquet", block("corpora.{corpus}")),
        also=filled("<results>/datasets/{also}.parquet", block("corpora.{corpus}")),
        code=code("data.corpora"),
    output:
        train="<results>/corpora/{corpus}/train.parquet",
        dev="<results>/corpora/{corpus}/dev.parquet",
    log:
        "<logs>/split_corpus/{corpus}.log",
    benchmark:
        "<benchmarks>/split_corpus/{corpus}.tsv"
    wildcard_constraints:
        corpus=one_of(having(SETTINGS.corpora, "dataset")),
    resources:
        **ask(4, minutes=15),
    params:
        **call("data.corpora", settings(corpus="corpora.{corpus}")),
    shell:
        command("split_corpus")


rule count_words:
    """Word frequencies of the training text."""
    input:
        sentences="<results>/corpora/{corpus}/train.parquet",
        code=code("data.words"),
    output:
        counts="<results>/corpora/{corpus}/words.parquet",
    log:
        "<logs>/count_words/{corpus}.log",
    benchmark:
        "<benchmarks>/count_words/{corpus}.tsv"
    resources:
        **ask(4, minutes=15),
    params:
        **call("data.words", settings(words="words")),
    shell:
        command("count_words")
