"""From encoders to scores without training: static averages, Wikitext's statistics, a job per representation and task."""


wildcard_constraints:
    representation=one_of(SETTINGS.extraction.representations),
    vocabulary="[a-z0-9_]+",
    task="[a-z0-9_]+",


of_study = lambda w: [SETTINGS.extraction.encoder]  # loaded by every job


rule read_word_vectors:
    """Convert static word vectors into a table, which is empty if the file is missing."""
    input:
        code=code("extraction.word_vectors"),
    output:
        vectors="<results>/extraction/words/{representation}.parquet",
    log:
        "<logs>/read_word_vectors/{representation}.log",
    benchmark:
        "<benchmarks>/read_word_vectors/{representation}.tsv"
    resources:
        **ask(16, minutes=30),
    params:
        **call("extraction.word_vectors", EXTRACTION.word_vectors),
    shell:
        command("read_word_vectors")


rule count_tokens:
    """Document frequencies in Wikitext's sentences, of the encoder's pieces or of words."""
    input:
        sentences=filled("<results>/datasets/{dataset}.parquet", block("extraction.wikitext")),
        encoder=branch(lambda w: w.vocabulary == "pieces", then=EXTRACTION.encoder),
        words=branch(
            lambda w: w.vocabulary != "pieces",
            then="<results>/extraction/words/{vocabulary}.parquet",
        ),
        code=code("extraction.vocabulary"),
    output:
        documents="<results>/extraction/documents/{vocabulary}.parquet",
    log:
        "<logs>/count_tokens/{vocabulary}.log",
    benchmark:
        "<benchmarks>/count_tokens/{vocabulary}.tsv"
    resources:
        **ask(4, minutes=15),
    params:
        **call("extraction.vocabulary", settings(wikitext="extraction.wikitext")),
    shell:
        command("count_tokens")


rule average_tokens:
    """Static averages of every token in every layer, from one forward pass over a corpus."""
    input:
        encoder=EXTRACTION.encoder,
        sentences=filled("<results>/datasets/{dataset}.parquet", block("extraction.averages")),
        code=code("extraction.averages"),
    output:
        averages="<results>/extraction/averages.parquet",
    log:
        "<logs>/average_tokens/averages.log",
    benchmark:
        "<benchmarks>/average_tokens/averages.tsv"
    resources:
        **ask(20, hours=12, loads=of_study),
        gpu=on_gpu("extraction"),
    params:
        **call("extraction.averages", settings(averages="extraction.averages")),
    shell:
        command("average_tokens")


rule fit_wikitext:
    """Post-processings fitted on Wikitext's vectors of one representation, and their IsoScore, from one forward pass."""
    input:
        encoder=EXTRACTION.encoder,
        biases=EXTRACTION.biases,
        sentences=filled("<results>/datasets/{dataset}.parquet", block("extraction.wikitext")),
        words=filled("<results>/extraction/words/{words}.parquet", EXTRACTION.reads),
        documents=filled("<results>/extraction/documents/{documents}.parquet", EXTRACTION.reads),
        averages=filled("<results>/extraction/{averages}.parquet", EXTRACTION.reads),
        code=code("extraction.study"),
    output:
        fitted="<results>/extraction/wikitext/{representation}.parquet",
        scores="<results>/extraction/scores/isotropy/{representation}/wikitext.parquet",
    log:
        "<logs>/fit_wikitext/{representation}.log",
    benchmark:
        "<benchmarks>/fit_wikitext/{representation}.tsv"
    resources:
        **ask(32, hours=2, loads=of_study),
        gpu=on_gpu("extraction"),
    params:
        **call("extraction.study", EXTRACTION.wikitext),
    shell:
        command("fit_wikitext")


rule extract_scores:
    """All layers, weightings and post-processings of one representation on one task, from one forward pass."""
    input:
        encoder=EXTRACTION.encoder,
        biases=EXTRACTION.biases,
        dataset=EXTRACTION.dataset,
        words=filled("<results>/extraction/words/{words}.parquet", EXTRACTION.reads),
        documents=filled("<results>/extraction/documents/{documents}.parquet", EXTRACTION.reads),
        averages=filled("<results>/extraction/{averages}.parquet", EXTRACTION.reads),
        fitted=filled("<results>/extraction/wikitext/{fitted}.parquet", EXTRACTION.reads),
        code=code("extraction.study", EXTRACTION.modules),
    output:
        scores="<results>/extraction/scores/{kind}/{representation}/{task}.parquet",
    log:
        "<logs>/extract_scores/{kind}/{representation}/{task}.log",
    benchmark:
        "<benchmarks>/extract_scores/{kind}/{representation}/{task}.tsv"
    wildcard_constraints:
        kind="sts|clustering|transfer|geometry",
    resources:
        **ask(32, hours=12, loads=of_study),
        gpu=on_gpu("extraction"),
    params:
        **call("extraction.study", EXTRACTION.task, EXTRACTION.modules),
    shell:
        command("extract_scores")
