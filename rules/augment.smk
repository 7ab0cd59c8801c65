"""From corpora to round trips (by translators) and pools of redundant exemplars (by language models).

Inputs:  <results>/corpora/{corpus}/{train,words}.parquet, prompts, answers of translators and language models
Outputs: <results>/corpora/{corpus}/{train,dropped}.parquet of round trips, their parts in round_trip/
         <results>/exemplars/{pool}.parquet, {pool}.dropped.parquet, {pool}.usage.parquet of a language model's pools

Answers are kept in the file that the setting `answers` names, which is not an output of any rule: a job that fails or
is killed requests only what is missing when it runs again. Who is asked and how fast decides no answer, so it is a
resource: changing it reruns nothing. Jobs run on the machine where snakemake runs, since the nodes of a cluster may have
no network; the profile limits how many of them run at once, and they share the rates and daily budgets of a service.
"""


scattergather:
    round_trip=config["round_trip"]["shards"],


rule translate_shard:
    """Translate one part of a corpus into another language and back."""
    input:
        sentences=CORPORA.base,
        prompt=CORPORA.translation_prompt,
        code=code_of("translate_shard"),
    output:
        trips="<results>/corpora/{corpus}/round_trip/{scatteritem}.parquet",
    log:
        "<logs>/translate_shard/{corpus}/{scatteritem}.log",
    benchmark:
        "<benchmarks>/translate_shard/{corpus}/{scatteritem}.tsv"
    wildcard_constraints:
        corpus=one_of(CORPORA.round_trips),
    localrule: True
    resources:
        **REQUESTS.of("translate_shard"),
        api_calls=1,
        service=CORPORA.translation_service,
    params:
        **call("translate_shard", CORPORA.translation),
    shell:
        command("translate_shard")


rule gather_round_trips:
    """Round trips of a corpus that may be trained on."""
    input:
        sentences=CORPORA.base,
        trips=gather.round_trip("<results>/corpora/{{corpus}}/round_trip/{scatteritem}.parquet"),
        code=code_of("gather_round_trips"),
    output:
        train="<results>/corpora/{corpus}/train.parquet",
        dropped="<results>/corpora/{corpus}/dropped.parquet",
    log:
        "<logs>/gather_round_trips/{corpus}.log",
    benchmark:
        "<benchmarks>/gather_round_trips/{corpus}.tsv"
    wildcard_constraints:
        corpus=one_of(CORPORA.round_trips),
    resources:
        **REQUESTS.of("gather_round_trips"),
    params:
        **call("gather_round_trips", CORPORA.round_trip_form),
    shell:
        command("gather_round_trips")


rule write_exemplars:
    """A pool of exemplars written by a language model."""
    input:
        words=filled(config, "exemplars.{pool}", "<results>/corpora/{corpus}/words.parquet"),
        encoder=filled(config, "exemplars.{pool}", "<results>/encoders/{encoder}/record.json"),
        prompt=filled(config, "exemplars.{pool}", "resources/prompts/{prompt}.txt"),
        code=code_of("write_exemplars"),
    output:
        exemplars="<results>/exemplars/{pool}.parquet",
        dropped="<results>/exemplars/{pool}.dropped.parquet",
        usage="<results>/exemplars/{pool}.usage.parquet",
    log:
        "<logs>/write_exemplars/{pool}.log",
    benchmark:
        "<benchmarks>/write_exemplars/{pool}.tsv"
    wildcard_constraints:
        pool=one_of(CORPORA.pools("llm")),
    localrule: True
    resources:
        **REQUESTS.of("write_exemplars"),
        api_calls=1,
        service=CORPORA.pool_service,
    params:
        **call("write_exemplars", CORPORA.written_pool),
    shell:
        command("write_exemplars")


rule pick_exemplars:
    """A pool of exemplars picked from the corpus itself, in place of a language model's."""
    input:
        sentences=filled(config, "exemplars.{pool}", "<results>/corpora/{corpus}/train.parquet"),
        words=filled(config, "exemplars.{pool}", "<results>/corpora/{corpus}/words.parquet"),
        encoder=filled(config, "exemplars.{pool}", "<results>/encoders/{encoder}/record.json"),
        code=code_of("pick_exemplars"),
    output:
        exemplars="<results>/exemplars/{pool}.parquet",
        dropped="<results>/exemplars/{pool}.dropped.parquet",
    log:
        "<logs>/pick_exemplars/{pool}.log",
    benchmark:
        "<benchmarks>/pick_exemplars/{pool}.tsv"
    wildcard_constraints:
        pool=one_of(CORPORA.pools("extractive")),
    resources:
        **REQUESTS.of("pick_exemplars"),
    params:
        **call("pick_exemplars", config_slice(config, pool="exemplars.{pool}")),
    shell:
        command("pick_exemplars")
