"""From encoders to scores without training: static averages, Wikitext's statistics, a job per representation and task.

Inputs:  <results>/encoders/{encoder}/record.json, <results>/datasets/{dataset}.parquet, resources/tokens/
Outputs: <results>/extraction/averages.parquet, exact sums of shards below <results>/extraction/shards/
         <results>/extraction/documents/{vocabulary}.parquet, document frequencies of Wikitext
         <results>/extraction/words/{representation}.parquet, static vectors of words
         <results>/extraction/wikitext/{representation}.parquet, post-processings fitted on Wikitext
         <results>/extraction/scores/{kind}/{representation}/{task}.parquet, long form (columns.extraction.EXTRACTION)
"""


scattergather:
    tokens=config["extraction"]["shards"],


wildcard_constraints:
    representation=one_of(config["extraction"]["representations"]),
    vocabulary="[a-z0-9_]+",
    task="[a-z0-9_]+",


rule read_word_vectors:
    """Convert static word vectors into a table, which is empty if the file is missing."""
    input:
        code=code_of("jobs.read_word_vectors"),
    output:
        vectors="<results>/extraction/words/{representation}.parquet",
    log:
        "<logs>/read_word_vectors/{representation}.log",
    benchmark:
        "<benchmarks>/read_word_vectors/{representation}.tsv"
    threads: 1
    resources:
        mem=MEMORY.usual(16),
        runtime="30m",
    params:
        config=EXTRACTION.word_vectors,
        packages=versions("jobs.read_word_vectors"),
    message:
        "Read word vectors {wildcards.representation}"
    shell:
        r"""
        python -m workflow_scripts.jobs.read_word_vectors \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --representation {wildcards.representation:q} --vectors {output.vectors:q} >{log:q} 2>&1
        """


rule count_tokens:
    """Document frequencies in Wikitext's sentences, of the encoder's pieces or of words."""
    input:
        sentences=EXTRACTION.wikitext,
        encoder=EXTRACTION.vocabulary_encoder,
        words=EXTRACTION.vocabulary_words,
        code=code_of("jobs.count_tokens"),
    output:
        documents="<results>/extraction/documents/{vocabulary}.parquet",
    log:
        "<logs>/count_tokens/{vocabulary}.log",
    benchmark:
        "<benchmarks>/count_tokens/{vocabulary}.tsv"
    threads: 1
    resources:
        mem=MEMORY.usual(4),
        runtime="15m",
    params:
        config=config_slice(config, wikitext="extraction.wikitext"),
        packages=versions("jobs.count_tokens"),
    message:
        "Count documents of {wildcards.vocabulary}"
    shell:
        r"""
        python -m workflow_scripts.jobs.count_tokens \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --vocabulary {wildcards.vocabulary:q} \
            --sentences {input.sentences:q} --encoder {input.encoder:q} --words {input.words:q} \
            --documents {output.documents:q} >{log:q} 2>&1
        """


rule average_tokens:
    """Exact sums of every token's states over one shard of the corpus."""
    input:
        encoder=EXTRACTION.encoder,
        sentences=EXTRACTION.averaged_corpus,
        code=code_of("jobs.average_tokens"),
    output:
        sums="<results>/extraction/shards/{scatteritem}.parquet",
    log:
        "<logs>/average_tokens/{scatteritem}.log",
    benchmark:
        "<benchmarks>/average_tokens/{scatteritem}.tsv"
    threads: 1
    resources:
        gpu=EVALUATION.gpus("extraction"),
        mem=MEMORY.averaging(),
        runtime=TIMES.averaging(60),
    params:
        config=config_slice(config, averages="extraction.averages"),
        packages=versions("jobs.average_tokens"),
    message:
        "Sum token states, shard {wildcards.scatteritem}"
    shell:
        r"""
        python -m workflow_scripts.jobs.average_tokens \
            --code {input.code:q} --packages {params.packages:q} \
            --gpus {resources.gpu:q} --config {params.config:q} --scatteritem {wildcards.scatteritem:q} \
            --encoder {input.encoder:q} --sentences {input.sentences:q} --sums {output.sums:q} >{log:q} 2>&1
        """


rule merge_token_averages:
    """Static averages of every token in every layer; the same bytes from any number of shards."""
    input:
        sums=gather.tokens("<results>/extraction/shards/{scatteritem}.parquet"),
        code=code_of("jobs.merge_token_averages"),
    output:
        averages="<results>/extraction/averages.parquet",
    log:
        "<logs>/merge_token_averages/averages.log",
    benchmark:
        "<benchmarks>/merge_token_averages/averages.tsv"
    threads: 1
    resources:
        mem=MEMORY.usual(2),
        runtime="30m",
    params:
        config="{}",
        packages=versions("jobs.merge_token_averages"),
    message:
        "Merge static token averages"
    shell:
        r"""
        python -m workflow_scripts.jobs.merge_token_averages \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --sums {input.sums:q} --averages {output.averages:q} >{log:q} 2>&1
        """


rule fit_wikitext:
    """Post-processings fitted on Wikitext's vectors of one representation, and their IsoScore, from one forward pass."""
    input:
        encoder=EXTRACTION.encoder,
        biases=EXTRACTION.biases,
        sentences=EXTRACTION.wikitext,
        words=EXTRACTION.words,
        documents=EXTRACTION.documents,
        averages=EXTRACTION.averages,
        code=code_of("jobs.fit_wikitext"),
    output:
        fitted="<results>/extraction/wikitext/{representation}.parquet",
        scores="<results>/extraction/scores/isotropy/{representation}/wikitext.parquet",
    log:
        "<logs>/fit_wikitext/{representation}.log",
    benchmark:
        "<benchmarks>/fit_wikitext/{representation}.tsv"
    threads: 1
    resources:
        gpu=EVALUATION.gpus("extraction"),
        mem=MEMORY.usual(32),
        runtime="2h",
    params:
        config=EXTRACTION.wikitext_settings,
        packages=versions("jobs.fit_wikitext"),
    message:
        "Fit post-processings of {wildcards.representation} on Wikitext"
    shell:
        r"""
        python -m workflow_scripts.jobs.fit_wikitext \
            --code {input.code:q} --packages {params.packages:q} \
            --gpus {resources.gpu:q} --config {params.config:q} --representation {wildcards.representation:q} \
            --encoder {input.encoder:q} --biases {input.biases:q} --sentences {input.sentences:q} \
            --words {input.words:q} --documents {input.documents:q} --averages {input.averages:q} \
            --fitted {output.fitted:q} --scores {output.scores:q} >{log:q} 2>&1
        """


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
        code=EXTRACTION.code,
    output:
        scores="<results>/extraction/scores/{kind}/{representation}/{task}.parquet",
    log:
        "<logs>/extract_scores/{kind}/{representation}/{task}.log",
    benchmark:
        "<benchmarks>/extract_scores/{kind}/{representation}/{task}.tsv"
    wildcard_constraints:
        kind="sts|clustering|transfer|geometry",
    threads: 1
    resources:
        gpu=EVALUATION.gpus("extraction"),
        mem=MEMORY.usual(32),
        runtime="12h",
    params:
        config=EXTRACTION.task_settings,
        packages=EXTRACTION.versions,
    message:
        "Extract {wildcards.representation} and score it on {wildcards.task}"
    shell:
        r"""
        python -m workflow_scripts.jobs.extract_scores \
            --code {input.code:q} --packages {params.packages:q} \
            --gpus {resources.gpu:q} --config {params.config:q} --kind {wildcards.kind:q} --representation {wildcards.representation:q} --task {wildcards.task:q} \
            --encoder {input.encoder:q} --biases {input.biases:q} --dataset {input.dataset:q} \
            --words {input.words:q} --documents {input.documents:q} --averages {input.averages:q} \
            --fitted {input.fitted:q} --scores {output.scores:q} >{log:q} 2>&1
        """
