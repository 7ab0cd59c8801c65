"""From encoders to scores without training: static averages, Wikitext's statistics, a job per representation and task.

Inputs:  <results>/encoders/{encoder}/record.json, <results>/datasets/{dataset}.parquet, resources/tokens/
Outputs: <results>/extraction/averages.parquet
         <results>/extraction/{documents,words}/, document frequencies of Wikitext and static vectors of words
         <results>/extraction/wikitext/{representation}.parquet, post-processings fitted on Wikitext
         <results>/extraction/scores/{kind}/{representation}/{task}.parquet, long form (columns.extraction.EXTRACTION)
"""


wildcard_constraints:
    representation=one_of(config["extraction"]["representations"]),
    vocabulary="[a-z0-9_]+",
    task="[a-z0-9_]+",


rule read_word_vectors:
    """Convert static word vectors into a table, which is empty if the file is missing."""
    input:
        code=code_of("read_word_vectors"),
    output:
        vectors="<results>/extraction/words/{representation}.parquet",
    log:
        "<logs>/read_word_vectors/{representation}.log",
    benchmark:
        "<benchmarks>/read_word_vectors/{representation}.tsv"
    resources:
        **REQUESTS.of("read_word_vectors"),
    params:
        **call("read_word_vectors", EXTRACTION.word_vectors),
    shell:
        command("read_word_vectors")


rule count_tokens:
    """Document frequencies in Wikitext's sentences, of the encoder's pieces or of words."""
    input:
        sentences=EXTRACTION.wikitext,
        encoder=EXTRACTION.vocabulary_encoder,
        words=EXTRACTION.vocabulary_words,
        code=code_of("count_tokens"),
    output:
        documents="<results>/extraction/documents/{vocabulary}.parquet",
    log:
        "<logs>/count_tokens/{vocabulary}.log",
    benchmark:
        "<benchmarks>/count_tokens/{vocabulary}.tsv"
    resources:
        **REQUESTS.of("count_tokens"),
    params:
        **call("count_tokens", config_slice(config, wikitext="extraction.wikitext")),
    shell:
        command("count_tokens")


rule average_tokens:
    """Static averages of every token in every layer, from one forward pass over a corpus."""
    input:
        encoder=EXTRACTION.encoder,
        sentences=EXTRACTION.averaged_corpus,
        code=code_of("average_tokens"),
    output:
        averages="<results>/extraction/averages.parquet",
    log:
        "<logs>/average_tokens/averages.log",
    benchmark:
        "<benchmarks>/average_tokens/averages.tsv"
    resources:
        **REQUESTS.of("average_tokens"),
        gpu=EVALUATION.gpus("extraction"),
    params:
        **call("average_tokens", config_slice(config, averages="extraction.averages")),
    shell:
        command("average_tokens")


rule fit_wikitext:
    """Post-processings fitted on Wikitext's vectors of one representation, and their IsoScore, from one forward pass."""
    input:
        encoder=EXTRACTION.encoder,
        biases=EXTRACTION.biases,
        sentences=EXTRACTION.wikitext,
        words=EXTRACTION.words,
        documents=EXTRACTION.documents,
        averages=EXTRACTION.averages,
        code=code_of("fit_wikitext"),
    output:
        fitted="<results>/extraction/wikitext/{representation}.parquet",
        scores="<results>/extraction/scores/isotropy/{representation}/wikitext.parquet",
    log:
        "<logs>/fit_wikitext/{representation}.log",
    benchmark:
        "<benchmarks>/fit_wikitext/{representation}.tsv"
    resources:
        **REQUESTS.of("fit_wikitext"),
        gpu=EVALUATION.gpus("extraction"),
    params:
        **call("fit_wikitext", EXTRACTION.wikitext_settings),
    shell:
        command("fit_wikitext")


rule extract_scores:
    """All layers, weightings and post-processings of one representation on one task, from one forward pass."""
    input:
        encoder=EXTRACTION.encoder,
        biases=EXTRACTION.biases,
        dataset=EXTRACTION.dataset,
        words=EXTRACTION.words,
        documents=EXTRACTION.documents,
        averages=EXTRACTION.averages,
        fitted=EXTRACTION.fitted,
        code=code_with("extract_scores", EXTRACTION.modules),
    output:
        scores="<results>/extraction/scores/{kind}/{representation}/{task}.parquet",
    log:
        "<logs>/extract_scores/{kind}/{representation}/{task}.log",
    benchmark:
        "<benchmarks>/extract_scores/{kind}/{representation}/{task}.tsv"
    wildcard_constraints:
        kind="sts|clustering|transfer|geometry",
    resources:
        **REQUESTS.of("extract_scores"),
        gpu=EVALUATION.gpus("extraction"),
    params:
        **call("extract_scores", EXTRACTION.task_settings, EXTRACTION.modules),
    shell:
        command("extract_scores")
