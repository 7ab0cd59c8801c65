"""From datasets of sentences or triples to corpora.

Inputs:  <results>/datasets/{dataset}.parquet
Outputs: <results>/corpora/{corpus}/{train,dev,words}.parquet
"""


rule split_corpus:
    """Training text, and held-out text as pairs for choosing checkpoints."""
    input:
        sentences=CORPORA.sentences,
        also=CORPORA.also,
        code=code_of("jobs.split_corpus"),
    output:
        train="<results>/corpora/{corpus}/train.parquet",
        dev="<results>/corpora/{corpus}/dev.parquet",
    log:
        "<logs>/split_corpus/{corpus}.log",
    benchmark:
        "<benchmarks>/split_corpus/{corpus}.tsv"
    wildcard_constraints:
        corpus=one_of(CORPORA.cut),
    threads: 1
    resources:
        mem=MEMORY.usual(4),
        runtime="15m",
    params:
        config=config_slice(config, corpus="corpora.{corpus}"),
        packages=versions("jobs.split_corpus"),
    message:
        "Split corpus {wildcards.corpus}"
    shell:
        r"""
        python -m workflow_scripts.jobs.split_corpus \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --corpus {wildcards.corpus:q} --sentences {input.sentences:q} \
            --also {input.also:q} --train {output.train:q} --dev {output.dev:q} >{log:q} 2>&1
        """


rule count_words:
    """Word frequencies of the training text."""
    input:
        sentences="<results>/corpora/{corpus}/train.parquet",
        code=code_of("jobs.count_words"),
    output:
        counts="<results>/corpora/{corpus}/words.parquet",
    log:
        "<logs>/count_words/{corpus}.log",
    benchmark:
        "<benchmarks>/count_words/{corpus}.tsv"
    threads: 1
    resources:
        mem=MEMORY.usual(4),
        runtime="15m",
    params:
        config=config_slice(config, words="words"),
        packages=versions("jobs.count_words"),
    message:
        "Count words of {wildcards.corpus}"
    shell:
        r"""
        python -m workflow_scripts.jobs.count_words \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --corpus {wildcards.corpus:q} --sentences {input.sentences:q} \
            --counts {output.counts:q} >{log:q} 2>&1
        """
