"""From published encoders and datasets to the forms that the pipeline reads.

Their bytes are pinned in the configuration, so that their location does not matter. These rules run where Snakemake
runs, as on a login node: no other one needs a network, but those that ask translators and language models. `make fetch`
runs them alone. The data of mteb's tasks stay in the cache of the Hub's client (HF_HOME).
"""

dataset = lambda w: DATASETS[w.dataset]
readers = lambda w: dataset(w).readers


rule fetch_encoder:
    """One published encoder: weights in safetensors, configuration and tokeniser, but no pickles."""
    input:
        code=code("data.encoders"),
    output:
        "<results>/encoders/{encoder}/config.json",  # its weights may be in shards
        record="<results>/encoders/{encoder}/record.json",
    log:
        "<logs>/fetch_encoder/{encoder}.log",
    benchmark:
        "<benchmarks>/fetch_encoder/{encoder}.tsv"
    wildcard_constraints:
        encoder=one_of(having(SETTINGS.encoders, "fetch")),
    localrule: True
    resources:
        **ask(2, minutes=30),
        downloads=1,
    params:
        **call("data.encoders", lambda w: outside.fetching(STUDY, w.encoder)),
    shell:
        command("fetch_encoder")


rule read_dataset:
    """One dataset in its form, checked against its contract."""
    input:
        code=code("data.datasets", readers),
    output:
        table="<results>/datasets/{dataset}.parquet",
        dropped="<results>/datasets/{dataset}.dropped.parquet",
    log:
        "<logs>/read_dataset/{dataset}.log",
    benchmark:
        "<benchmarks>/read_dataset/{dataset}.tsv"
    localrule: True
    resources:
        **ask(4, minutes=30),
        downloads=1,
        contract=lambda w: dataset(w).contract,
    params:
        **call("data.datasets", lambda w: dataset(w).settings, readers),
    shell:
        command("read_dataset")


rule fetch_tasks:
    """Data of mteb's tasks in the cache of the Hub's client, each at the commit that mteb names; a job per suite."""
    input:
        code=code("evaluation.mteb_data"),
    output:
        tasks="<results>/mteb/{suite}.parquet",
    log:
        "<logs>/fetch_tasks/{suite}.log",
    benchmark:
        "<benchmarks>/fetch_tasks/{suite}.tsv"
    wildcard_constraints:
        suite=one_of(SETTINGS.suites.mteb),
    localrule: True
    resources:
        **ask(4, hours=4),
        downloads=1,
    params:
        **call("evaluation.mteb_data", parts(suite, tasks="fetched")),
    shell:
        command("fetch_tasks")
