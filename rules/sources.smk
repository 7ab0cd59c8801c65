"""Published encoders and datasets into the forms the pipeline reads.

Inputs:  what the blocks `encoders` and `datasets` name: files below the data root, packages, the Hub.
         Their bytes are pinned in the configuration, so that where they lie decides nothing.
Outputs: <results>/encoders/{encoder}/record.json and the folder it seals
         <results>/datasets/{dataset}.parquet, <results>/datasets/{dataset}.dropped.parquet
"""


rule fetch_encoder:
    """Copy one published encoder: weights without pickles, configuration, tokeniser."""
    input:
        code=sources("fetch_encoder"),
    output:
        record="<results>/encoders/{encoder}/record.json",
        weights="<results>/encoders/{encoder}/model.safetensors",
    log:
        "<logs>/fetch_encoder/{encoder}.log",
    benchmark:
        "<benchmarks>/fetch_encoder/{encoder}.tsv"
    wildcard_constraints:
        encoder=one_of(FETCHED),
    threads: 1
    resources:
        mem="2GB",
        runtime="30m",
        downloads=1,
    params:
        config=config_slice(config, encoder="encoders.{encoder}.fetch"),
        packages=versions("fetch_encoder"),
    message:
        "Fetch encoder {wildcards.encoder}"
    shell:
        r"""
        python -m workflow_scripts.fetch_encoder \
            --config {params.config:q} --encoder {wildcards.encoder:q} --record {output.record:q} >{log:q} 2>&1
        """


rule read_dataset:
    """Bring one dataset into its form and hold it to its contract."""
    input:
        code=lambda wildcards: sources("read_dataset", *readers_of(wildcards)),
    output:
        table="<results>/datasets/{dataset}.parquet",
        dropped="<results>/datasets/{dataset}.dropped.parquet",
    log:
        "<logs>/read_dataset/{dataset}.log",
    benchmark:
        "<benchmarks>/read_dataset/{dataset}.tsv"
    threads: 1
    resources:
        mem="4GB",
        runtime="30m",
        downloads=1,
    params:
        config=config_slice(config, dataset="datasets.{dataset}"),
        packages=lambda wildcards: versions("read_dataset", *readers_of(wildcards)),
    message:
        "Read dataset {wildcards.dataset}"
    shell:
        r"""
        python -m workflow_scripts.read_dataset \
            --config {params.config:q} --dataset {wildcards.dataset:q} \
            --table {output.table:q} --dropped {output.dropped:q} >{log:q} 2>&1
        """
