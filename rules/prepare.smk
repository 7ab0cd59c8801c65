"""Datasets of sentences or triples to corpora.

Inputs:  <results>/datasets/{dataset}.parquet
Outputs: <results>/corpora/{corpus}/{train,dev,words}.parquet
"""


rule split_corpus:
    """Text to train on, and held-out text as pairs to choose checkpoints by."""
    input:
        sentences=sentences_of,
        also=also_of,
        code=sources("split_corpus"),
    output:
        train="<results>/corpora/{corpus}/train.parquet",
        dev="<results>/corpora/{corpus}/dev.parquet",
    log:
        "<logs>/split_corpus/{corpus}.log",
    benchmark:
        "<benchmarks>/split_corpus/{corpus}.tsv"
    wildcard_constraints:
        corpus=one_of(CUT),
    threads: 1
    resources:
        mem="4GB",
        runtime="15m",
    params:
        config=config_slice(config, corpus="corpora.{corpus}"),
        packages=versions("split_corpus"),
    message:
        "Split corpus {wildcards.corpus}"
    shell:
        r"""
        python -m workflow_scripts.split_corpus \
            --config {params.config:q} --corpus {wildcards.corpus:q} --sentences {input.sentences:q} \
            --also {input.also:q} --train {output.train:q} --dev {output.dev:q} >{log:q} 2>&1
        """


rule count_words:
    """Word frequencies of the text to train on."""
    input:
        sentences="<results>/corpora/{corpus}/train.parquet",
        code=sources("count_words"),
    output:
        counts="<results>/corpora/{corpus}/words.parquet",
    log:
        "<logs>/count_words/{corpus}.log",
    benchmark:
        "<benchmarks>/count_words/{corpus}.tsv"
    threads: 1
    resources:
        mem="4GB",
        runtime="15m",
    params:
        config=config_slice(config, words="words"),
        packages=versions("count_words"),
    message:
        "Count words of {wildcards.corpus}"
    shell:
        r"""
        python -m workflow_scripts.count_words \
            --config {params.config:q} --corpus {wildcards.corpus:q} --sentences {input.sentences:q} \
            --counts {output.counts:q} >{log:q} 2>&1
        """
