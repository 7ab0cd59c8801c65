"""What translators and language models make from corpora: round trips, and pools of redundant exemplars.

Inputs:  <results>/corpora/{corpus}/{train,words}.parquet, prompts, answers of translators and language models
Outputs: <results>/corpora/{corpus}/{train,dropped}.parquet of round trips, their parts in round_trip/
         <results>/exemplars/{pool}.parquet, {pool}.dropped.parquet, {pool}.usage.parquet where it cost something

Answers are kept in the file that the setting `answers` names, which is no rule's output: a job that fails or
is killed asks only for what is missing when it runs again. Jobs run where snakemake does, since a cluster's
nodes may reach no network; the profile caps how many call at once.
"""


scattergather:
    round_trip=config["round_trip"]["shards"],


rule translate_shard:
    """Translate one part of a corpus and translate it back."""
    input:
        sentences=base_corpus_of,
        code=sources("translate_shard"),
    output:
        trips="<results>/corpora/{corpus}/round_trip/{scatteritem}.parquet",
    log:
        "<logs>/translate_shard/{corpus}/{scatteritem}.log",
    benchmark:
        "<benchmarks>/translate_shard/{corpus}/{scatteritem}.tsv"
    wildcard_constraints:
        corpus=one_of(ROUND_TRIPS),
    localrule: True
    threads: 1
    resources:
        mem="2GB",
        runtime="24h",
        api_calls=1,
    params:
        config=translation_of,
        packages=versions("translate_shard"),
    message:
        "Translate part {wildcards.scatteritem} for {wildcards.corpus}"
    shell:
        r"""
        python -m workflow_scripts.translate_shard \
            --config {params.config:q} --corpus {wildcards.corpus:q} --scatteritem {wildcards.scatteritem:q} \
            --sentences {input.sentences:q} --trips {output.trips:q} >{log:q} 2>&1
        """


rule gather_round_trips:
    """The round trips of a corpus that may be trained on."""
    input:
        sentences=base_corpus_of,
        trips=gather.round_trip("<results>/corpora/{{corpus}}/round_trip/{scatteritem}.parquet"),
        code=sources("gather_round_trips"),
    output:
        train="<results>/corpora/{corpus}/train.parquet",
        dropped="<results>/corpora/{corpus}/dropped.parquet",
    log:
        "<logs>/gather_round_trips/{corpus}.log",
    benchmark:
        "<benchmarks>/gather_round_trips/{corpus}.tsv"
    wildcard_constraints:
        corpus=one_of(ROUND_TRIPS),
    threads: 1
    resources:
        mem="4GB",
        runtime="15m",
    params:
        config=shape_of,
        packages=versions("gather_round_trips"),
    message:
        "Gather the round trips of {wildcards.corpus}"
    shell:
        r"""
        python -m workflow_scripts.gather_round_trips \
            --config {params.config:q} --corpus {wildcards.corpus:q} \
            --sentences {input.sentences:q} --trips {input.trips:q} \
            --train {output.train:q} --dropped {output.dropped:q} >{log:q} 2>&1
        """


rule write_exemplars:
    """A pool of exemplars that a language model writes."""
    input:
        words=lambda wildcards: f"<results>/corpora/{pool_of(wildcards)['corpus']}/words.parquet",
        encoder=lambda wildcards: f"<results>/encoders/{pool_of(wildcards)['encoder']}/record.json",
        prompt=lambda wildcards: f"resources/prompts/{pool_of(wildcards)['prompt']}.txt",
        code=sources("write_exemplars"),
    output:
        exemplars="<results>/exemplars/{pool}.parquet",
        dropped="<results>/exemplars/{pool}.dropped.parquet",
        usage="<results>/exemplars/{pool}.usage.parquet",
    log:
        "<logs>/write_exemplars/{pool}.log",
    benchmark:
        "<benchmarks>/write_exemplars/{pool}.tsv"
    wildcard_constraints:
        pool=one_of(WRITTEN_POOLS),
    localrule: True
    threads: 1
    resources:
        mem="4GB",
        runtime="4h",
        api_calls=1,
    params:
        config=written_pool_of,
        packages=versions("write_exemplars"),
    message:
        "Write exemplars {wildcards.pool}"
    shell:
        r"""
        python -m workflow_scripts.write_exemplars \
            --config {params.config:q} --pool {wildcards.pool:q} \
            --words {input.words:q} --encoder {input.encoder:q} --prompt {input.prompt:q} \
            --exemplars {output.exemplars:q} --dropped {output.dropped:q} --usage {output.usage:q} >{log:q} 2>&1
        """


rule pick_exemplars:
    """A pool of exemplars from the corpus itself, the stand-in for a language model's."""
    input:
        sentences=lambda wildcards: f"<results>/corpora/{pool_of(wildcards)['corpus']}/train.parquet",
        words=lambda wildcards: f"<results>/corpora/{pool_of(wildcards)['corpus']}/words.parquet",
        encoder=lambda wildcards: f"<results>/encoders/{pool_of(wildcards)['encoder']}/record.json",
        code=sources("pick_exemplars"),
    output:
        exemplars="<results>/exemplars/{pool}.parquet",
        dropped="<results>/exemplars/{pool}.dropped.parquet",
    log:
        "<logs>/pick_exemplars/{pool}.log",
    benchmark:
        "<benchmarks>/pick_exemplars/{pool}.tsv"
    wildcard_constraints:
        pool=one_of(PICKED_POOLS),
    threads: 1
    resources:
        mem="4GB",
        runtime="15m",
    params:
        config=config_slice(config, pool="exemplars.{pool}"),
        packages=versions("pick_exemplars"),
    message:
        "Pick exemplars {wildcards.pool}"
    shell:
        r"""
        python -m workflow_scripts.pick_exemplars \
            --config {params.config:q} --pool {wildcards.pool:q} \
            --sentences {input.sentences:q} --words {input.words:q} --encoder {input.encoder:q} \
            --exemplars {output.exemplars:q} --dropped {output.dropped:q} >{log:q} 2>&1
        """
