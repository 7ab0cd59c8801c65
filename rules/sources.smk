"""From published encoders and datasets to the forms that the pipeline reads.

Inputs:  the sources in the blocks `encoders` and `datasets`: files below the data root, packages, the Hub.
         Their bytes are pinned in the configuration, so that their location does not matter.
Outputs: <results>/encoders/{encoder}/record.json and the folder it checksums
         <results>/datasets/{dataset}.parquet, <results>/datasets/{dataset}.dropped.parquet
         <results>/mteb/{suite}.parquet; the data of its tasks stay in the cache of the Hub's client (HF_HOME)

These rules run where Snakemake runs, as on a login node: no other one needs a network, but those that ask translators
and language models. `make fetch` runs them alone.
"""


rule fetch_encoder:
    """One published encoder: weights in safetensors, configuration and tokeniser, but no pickles."""
    input:
        code=code_of("jobs.fetch_encoder"),
    output:
        record="<results>/encoders/{encoder}/record.json",
        weights="<results>/encoders/{encoder}/model.safetensors",
    log:
        "<logs>/fetch_encoder/{encoder}.log",
    benchmark:
        "<benchmarks>/fetch_encoder/{encoder}.tsv"
    wildcard_constraints:
        encoder=one_of(STUDY.encoders("fetch")),
    localrule: True
    threads: 1
    resources:
        mem=MEMORY.usual(2),
        runtime="30m",
        downloads=1,
    params:
        config=TRAINING.fetching_settings,
        packages=versions("jobs.fetch_encoder"),
    message:
        "Fetch encoder {wildcards.encoder}"
    shell:
        r"""
        python -m workflow_scripts.jobs.fetch_encoder \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --encoder {wildcards.encoder:q} --record {output.record:q} >{log:q} 2>&1
        """


rule read_dataset:
    """One dataset in its form, checked against its contract."""
    input:
        code=CORPORA.reader_code,
    output:
        table="<results>/datasets/{dataset}.parquet",
        dropped="<results>/datasets/{dataset}.dropped.parquet",
    log:
        "<logs>/read_dataset/{dataset}.log",
    benchmark:
        "<benchmarks>/read_dataset/{dataset}.tsv"
    localrule: True
    threads: 1
    resources:
        mem=MEMORY.usual(4),
        runtime="30m",
        downloads=1,
        min_rows=CORPORA.min_rows,
    params:
        config=CORPORA.dataset,
        packages=CORPORA.reader_versions,
    message:
        "Read dataset {wildcards.dataset}"
    shell:
        r"""
        python -m workflow_scripts.jobs.read_dataset \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --dataset {wildcards.dataset:q} \
            --min_rows {resources.min_rows:q} --table {output.table:q} --dropped {output.dropped:q} >{log:q} 2>&1
        """


rule fetch_tasks:
    """Data of mteb's tasks in the cache of the Hub's client, each at the commit that mteb names; a job per suite."""
    input:
        code=code_of("jobs.fetch_tasks"),
    output:
        tasks="<results>/mteb/{suite}.parquet",
    log:
        "<logs>/fetch_tasks/{suite}.log",
    benchmark:
        "<benchmarks>/fetch_tasks/{suite}.tsv"
    localrule: True
    threads: 1
    resources:
        mem=MEMORY.usual(4),
        runtime="4h",
        downloads=1,
    params:
        config=EVALUATION.mteb_data,
        packages=versions("jobs.fetch_tasks"),
    message:
        "Fetch the tasks of {wildcards.suite}"
    shell:
        r"""
        python -m workflow_scripts.jobs.fetch_tasks \
            --code {input.code:q} --packages {params.packages:q} \
            --config {params.config:q} --suite {wildcards.suite:q} --tasks {output.tasks:q} >{log:q} 2>&1
        """
