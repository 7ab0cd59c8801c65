"""Encoders to scores without training: static averages, Wikitext's statistics, one job a source and task.

Inputs:  <results>/encoders/{encoder}/record.json, <results>/datasets/{dataset}.parquet, resources/tokens/
Outputs: <results>/extraction/averages.parquet, exact sums of shards below <results>/extraction/shards/
         <results>/extraction/documents/{vocabulary}.parquet, document frequencies of Wikitext
         <results>/extraction/words/{source}.parquet, static vectors of words
         <results>/extraction/wikitext/{source}.parquet, what post-processings learn from Wikitext
         <results>/extraction/scores/{kind}/{source}/{task}.parquet, long form (schemas.EXTRACTION)
"""

EXTRACTION = config["extraction"]
EXTRACTED = f"<results>/encoders/{EXTRACTION['encoder']}/record.json"
BIASES = f"resources/tokens/{EXTRACTION['bias_list']}.json"


scattergather:
    tokens=EXTRACTION["shards"],


wildcard_constraints:
    source=one_of(EXTRACTION["sources"]),
    vocabulary="[a-z0-9_]+",
    task="[a-z0-9_]+",


rule read_word_vectors:
    """Bring static vectors of words into their form; none where nobody has put them there."""
    input:
        code=sources("read_word_vectors"),
    output:
        vectors="<results>/extraction/words/{source}.parquet",
    log:
        "<logs>/read_word_vectors/{source}.log",
    benchmark:
        "<benchmarks>/read_word_vectors/{source}.tsv"
    threads: 1
    resources:
        mem="16GB",
        runtime="30m",
    params:
        config=config_slice(config, source="extraction.sources.{source}"),
        packages=versions("read_word_vectors"),
    message:
        "Read word vectors {wildcards.source}"
    shell:
        r"""
        python -m workflow_scripts.read_word_vectors \
            --config {params.config:q} --source {wildcards.source:q} --vectors {output.vectors:q} >{log:q} 2>&1
        """


rule count_tokens:
    """Document frequencies of Wikitext's sentences, in the encoder's pieces or in words."""
    input:
        sentences=f"<results>/datasets/{EXTRACTION['wikitext']['dataset']}.parquet",
        encoder=lambda wildcards: [EXTRACTED] if wildcards.vocabulary == "pieces" else [],
        words=lambda wildcards: (
            []
            if wildcards.vocabulary == "pieces"
            else [f"<results>/extraction/words/{wildcards.vocabulary}.parquet"]
        ),
        code=sources("count_tokens"),
    output:
        documents="<results>/extraction/documents/{vocabulary}.parquet",
    log:
        "<logs>/count_tokens/{vocabulary}.log",
    benchmark:
        "<benchmarks>/count_tokens/{vocabulary}.tsv"
    threads: 1
    resources:
        mem="4GB",
        runtime="15m",
    params:
        config=config_slice(config, wikitext="extraction.wikitext"),
        packages=versions("count_tokens"),
    message:
        "Count documents of {wildcards.vocabulary}"
    shell:
        r"""
        python -m workflow_scripts.count_tokens \
            --config {params.config:q} --vocabulary {wildcards.vocabulary:q} \
            --sentences {input.sentences:q} --encoder {input.encoder:q} --words {input.words:q} \
            --documents {output.documents:q} >{log:q} 2>&1
        """


rule average_tokens:
    """Exact sums of every token's states over one shard of the corpus; memory is vocabulary times layers."""
    input:
        encoder=EXTRACTED,
        sentences=f"<results>/datasets/{EXTRACTION['averages']['dataset']}.parquet",
        code=sources("average_tokens"),
    output:
        sums="<results>/extraction/shards/{scatteritem}.parquet",
    log:
        "<logs>/average_tokens/{scatteritem}.log",
    benchmark:
        "<benchmarks>/average_tokens/{scatteritem}.tsv"
    threads: 1
    resources:
        gpu=1,
        mem="16GB",
        runtime="4h",
    params:
        config=config_slice(config, averages="extraction.averages"),
        packages=versions("average_tokens"),
    message:
        "Sum token states, shard {wildcards.scatteritem}"
    shell:
        r"""
        python -m workflow_scripts.average_tokens \
            --config {params.config:q} --scatteritem {wildcards.scatteritem:q} \
            --encoder {input.encoder:q} --sentences {input.sentences:q} --sums {output.sums:q} >{log:q} 2>&1
        """


rule merge_token_averages:
    """Static averages of every token in every layer; the same bytes from any number of shards."""
    input:
        sums=gather.tokens("<results>/extraction/shards/{scatteritem}.parquet"),
        code=sources("merge_token_averages"),
    output:
        averages="<results>/extraction/averages.parquet",
    log:
        "<logs>/merge_token_averages/averages.log",
    benchmark:
        "<benchmarks>/merge_token_averages/averages.tsv"
    threads: 1
    resources:
        mem="16GB",
        runtime="1h",
    params:
        config="{}",
        packages=versions("merge_token_averages"),
    message:
        "Merge static token averages"
    shell:
        r"""
        python -m workflow_scripts.merge_token_averages \
            --config {params.config:q} --sums {input.sums:q} --averages {output.averages:q} >{log:q} 2>&1
        """


rule fit_wikitext:
    """What post-processings learn from Wikitext's vectors of one source, and their IsoScore; one forward pass."""
    input:
        encoder=EXTRACTED,
        biases=BIASES,
        sentences=f"<results>/datasets/{EXTRACTION['wikitext']['dataset']}.parquet",
        words=word_vectors_of,
        documents=documents_of,
        averages=needed("<results>/extraction/averages.parquet", needs_averages),
        code=sources("fit_wikitext"),
    output:
        shaping="<results>/extraction/wikitext/{source}.parquet",
        scores="<results>/extraction/scores/isotropy/{source}/wikitext.parquet",
    log:
        "<logs>/fit_wikitext/{source}.log",
    benchmark:
        "<benchmarks>/fit_wikitext/{source}.tsv"
    threads: 1
    resources:
        gpu=1,
        mem="32GB",
        runtime="2h",
    params:
        config=lambda wildcards: as_json(
            {"wikitext": EXTRACTION["wikitext"]} | wikitext_settings(EXTRACTION, wildcards.source)
        ),
        packages=versions("fit_wikitext"),
    message:
        "Learn from Wikitext: {wildcards.source}"
    shell:
        r"""
        python -m workflow_scripts.fit_wikitext \
            --config {params.config:q} --source {wildcards.source:q} \
            --encoder {input.encoder:q} --biases {input.biases:q} --sentences {input.sentences:q} \
            --words {input.words:q} --documents {input.documents:q} --averages {input.averages:q} \
            --shaping {output.shaping:q} --scores {output.scores:q} >{log:q} 2>&1
        """


rule extract_scores:
    """All layers, weightings and post-processings of one source on one task, from one forward pass."""
    input:
        encoder=EXTRACTED,
        biases=BIASES,
        dataset=task_dataset,
        words=word_vectors_of,
        documents=documents_of,
        averages=needed("<results>/extraction/averages.parquet", needs_averages),
        shaping=needed("<results>/extraction/wikitext/{source}.parquet", needs_shaping),
        code=lambda wildcards: sources("extract_scores", f"extraction.scoring.{wildcards.kind}"),
    output:
        scores="<results>/extraction/scores/{kind}/{source}/{task}.parquet",
    log:
        "<logs>/extract_scores/{kind}/{source}/{task}.log",
    benchmark:
        "<benchmarks>/extract_scores/{kind}/{source}/{task}.tsv"
    wildcard_constraints:
        kind="sts|clustering|transfer|geometry",
    threads: 1
    resources:
        gpu=1,
        mem="32GB",
        runtime="12h",
    params:
        config=task_settings,
        packages=lambda wildcards: versions("extract_scores", f"extraction.scoring.{wildcards.kind}"),
    message:
        "Extract {wildcards.source} and score it on {wildcards.task}"
    shell:
        r"""
        python -m workflow_scripts.extract_scores \
            --config {params.config:q} --kind {wildcards.kind:q} --source {wildcards.source:q} --task {wildcards.task:q} \
            --encoder {input.encoder:q} --biases {input.biases:q} --dataset {input.dataset:q} \
            --words {input.words:q} --documents {input.documents:q} --averages {input.averages:q} \
            --shaping {input.shaping:q} --scores {output.scores:q} >{log:q} 2>&1
        """
