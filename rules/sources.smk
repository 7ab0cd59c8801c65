"""From published encoders and datasets to the forms that the pipeline reads.

Their bytes are pinned in the configuration, so their location does not matter. These rules run where Snakemake runs,
such as on a login node. Of all others, only those that query translators and language models need a network.
`make fetch` runs only these rules. The data of mteb's tasks stay in the cache of the Hub's client (HF_HOME).
"""

dataset = lambda w: DATASETS[w.dataset]
readers = lambda w: dataset(w).readers


fetch_encoder = JobSpec(
    "jobs.fetch_encoder.fetch_encoder",
    settings=lambda w: outside.fetching(STUDY, w.encoder),
    outside="encoders.{encoder}",
)


rule fetch_encoder:
    """Fetch and check one published encoder: weights in safetensors, configuration and tokeniser, but no pickles."""
    input:
        code=fetch_encoder.code,
    output:
        "<results>/encoders/{encoder}/config.json",  # weights may be in shards
        record="<results>/encoders/{encoder}/record.json",
    log:
        "<logs>/fetch_encoder/{encoder}.log",
    benchmark:
        "<benchmarks>/fetch_encoder/{encoder}.tsv"
    wildcard_constraints:
        encoder=name_pattern(blocks_with(SETTINGS.encoders, "fetch")),
    localrule: True
    resources:
        **job_resources(gigabytes=8, minutes=30),  # its check loads two models of at most 2.5 GB
        downloads=1,
    params:
        **fetch_encoder.params,
    message:
        "Fetch encoder {wildcards.encoder}; log: {log}"
    shell:
        fetch_encoder.shell


read_dataset = JobSpec(
    "data.datasets.read_dataset",
    settings=lambda w: dataset(w).settings,
    imports=readers,
    outside="datasets.{dataset}",
)


rule read_dataset:
    """Read one dataset in its form, and check its contract."""
    input:
        code=read_dataset.code,
    output:
        table="<results>/datasets/{dataset}.parquet",
        dropped="<results>/datasets/{dataset}.dropped.parquet",
    log:
        "<logs>/read_dataset/{dataset}.log",
    benchmark:
        "<benchmarks>/read_dataset/{dataset}.tsv"
    localrule: True
    resources:
        **job_resources(gigabytes=4, minutes=30),
        downloads=1,
        contract=lambda w: dataset(w).contract,
    params:
        **read_dataset.params,
    message:
        "Read dataset {wildcards.dataset}; log: {log}"
    shell:
        read_dataset.shell


fetch_tasks = JobSpec(
    "evaluation.mteb_data.fetch_tasks",
    settings=settings_of(suite, tasks="fetched"),
    cached=False,
)


rule fetch_tasks:
    """Download data of mteb's tasks into the cache of the Hub's client, each at mteb's commit; one job per suite."""
    input:
        code=fetch_tasks.code,
    output:
        tasks="<results>/mteb/{suite}.parquet",
    log:
        "<logs>/fetch_tasks/{suite}.log",
    benchmark:
        "<benchmarks>/fetch_tasks/{suite}.tsv"
    wildcard_constraints:
        suite=name_pattern(SETTINGS.suites.mteb),
    localrule: True
    resources:
        **job_resources(gigabytes=4, hours=4),
        downloads=1,
    params:
        **fetch_tasks.params,
    message:
        "Fetch the data of mteb's tasks of suite {wildcards.suite}; log: {log}"
    shell:
        fetch_tasks.shell
