"""From encoders to scores without training: averages, Wikitext's statistics, one job per representation and task."""

STATIC = blocks_with(SETTINGS.extraction.representations, "kind", "words")  # vectors of whole words


wildcard_constraints:
    representation=name_pattern(SETTINGS.extraction.representations),
    vocabulary=name_pattern(["pieces", *STATIC]),  # the encoder's pieces, or the words of static vectors
    task="[a-z0-9_]+",


study_encoder = lambda w: [SETTINGS.extraction.encoder]  # for `encoders`: every job loads it


read_word_vectors = JobSpec(
    "extraction.word_vectors.read_word_vectors",
    settings=EXTRACTION.word_vectors,
    outside="extraction.representations.{representation}",
)


rule read_word_vectors:
    """Convert static word vectors into a table, which is empty if the file is missing."""
    input:
        code=read_word_vectors.code,
    output:
        vectors="<results>/extraction/words/{representation}.parquet",
    log:
        "<logs>/read_word_vectors/{representation}.log",
    benchmark:
        "<benchmarks>/read_word_vectors/{representation}.tsv"
    wildcard_constraints:
        representation=name_pattern(STATIC),
    resources:
        **job_resources(gigabytes=16, minutes=30),
    params:
        **read_word_vectors.params,
    message:
        "Read word vectors {wildcards.representation}; log: {log}"
    shell:
        read_word_vectors.shell


count_tokens = JobSpec(
    "extraction.vocabulary.count_tokens",
    settings=config_settings(wikitext="extraction.wikitext"),
)


rule count_tokens:
    """Count document frequencies of the encoder's pieces, or of words, in Wikitext's sentences."""
    input:
        sentences=path_if_set("<results>/datasets/{dataset}.parquet", setting("extraction.wikitext")),
        encoder=branch(lambda w: w.vocabulary == "pieces", then=EXTRACTION.encoder),
        words=branch(
            lambda w: w.vocabulary != "pieces",
            then="<results>/extraction/words/{vocabulary}.parquet",
        ),
        code=count_tokens.code,
    output:
        documents="<results>/extraction/documents/{vocabulary}.parquet",
    log:
        "<logs>/count_tokens/{vocabulary}.log",
    benchmark:
        "<benchmarks>/count_tokens/{vocabulary}.tsv"
    resources:
        **job_resources(gigabytes=4, minutes=15),
    params:
        **count_tokens.params,
    message:
        "Count the sentences of Wikitext that contain each of {wildcards.vocabulary}; log: {log}"
    shell:
        count_tokens.shell


average_tokens = JobSpec(
    "extraction.averages.average_tokens",
    settings=config_settings(averages="extraction.averages"),
)


rule average_tokens:
    """Compute static averages of every token in every layer, from one forward pass over a corpus."""
    input:
        encoder=EXTRACTION.encoder,
        sentences=path_if_set("<results>/datasets/{dataset}.parquet", setting("extraction.averages")),
        code=average_tokens.code,
    output:
        averages="<results>/extraction/averages.parquet",
    log:
        "<logs>/average_tokens/averages.log",
    benchmark:
        "<benchmarks>/average_tokens/averages.tsv"
    resources:
        **job_resources(gigabytes=20, hours=12, encoders=study_encoder),
        gpu=on_gpu("extraction"),
    params:
        **average_tokens.params,
    message:
        "Average every token's states over a corpus; log: {log}"
    shell:
        average_tokens.shell


fit_wikitext = JobSpec(
    "extraction.study.fit_wikitext",
    settings=EXTRACTION.wikitext,
)


rule fit_wikitext:
    """Fit post-processings on Wikitext's vectors of one representation, with their IsoScore, in one forward pass."""
    input:
        encoder=EXTRACTION.encoder,
        biases=EXTRACTION.biases,
        sentences=path_if_set("<results>/datasets/{dataset}.parquet", setting("extraction.wikitext")),
        words=path_if_set("<results>/extraction/words/{words}.parquet", EXTRACTION.reads),
        documents=path_if_set("<results>/extraction/documents/{documents}.parquet", EXTRACTION.reads),
        averages=path_if_set("<results>/extraction/{averages}.parquet", EXTRACTION.reads),
        code=fit_wikitext.code,
    output:
        fitted="<results>/extraction/wikitext/{representation}.parquet",
        scores="<results>/extraction/scores/isotropy/{representation}/wikitext.parquet",
    log:
        "<logs>/fit_wikitext/{representation}.log",
    benchmark:
        "<benchmarks>/fit_wikitext/{representation}.tsv"
    resources:
        **job_resources(gigabytes=32, hours=2, encoders=study_encoder),
        gpu=on_gpu("extraction"),
    params:
        **fit_wikitext.params,
    message:
        "Fit post-processings of {wildcards.representation} on Wikitext's vectors; log: {log}"
    shell:
        fit_wikitext.shell


extract_scores = JobSpec(
    "extraction.study.extract_scores",
    settings=EXTRACTION.task,
    imports=EXTRACTION.modules,
)


rule extract_scores:
    """Score all layers, weightings and post-processings of one representation on one task, in one forward pass."""
    input:
        encoder=EXTRACTION.encoder,
        biases=EXTRACTION.biases,
        dataset=EXTRACTION.dataset,
        words=path_if_set("<results>/extraction/words/{words}.parquet", EXTRACTION.reads),
        documents=path_if_set("<results>/extraction/documents/{documents}.parquet", EXTRACTION.reads),
        averages=path_if_set("<results>/extraction/{averages}.parquet", EXTRACTION.reads),
        fitted=path_if_set("<results>/extraction/wikitext/{fitted}.parquet", EXTRACTION.reads),
        code=extract_scores.code,
    output:
        scores="<results>/extraction/scores/{kind}/{representation}/{task}.parquet",
    log:
        "<logs>/extract_scores/{kind}/{representation}/{task}.log",
    benchmark:
        "<benchmarks>/extract_scores/{kind}/{representation}/{task}.tsv"
    wildcard_constraints:
        # one of these kinds, followed by a representation and one of its tasks
        kind="|".join(
            f"{kind}(?=/[a-z0-9_]+/{name_pattern(tasks)}[.])" for kind, tasks in EXTRACTION.tasks.items()
        ),
    threads: EXTRACTION.threads
    resources:
        **job_resources(gigabytes=32, hours=12, encoders=study_encoder),
        gpu=on_gpu("extraction"),
    params:
        **extract_scores.params,
    message:
        "Score {wildcards.representation} on {wildcards.kind} task {wildcards.task}; log: {log}"
    shell:
        extract_scores.shell
