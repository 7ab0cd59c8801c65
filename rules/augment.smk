"""From corpora to round trips (by translators) and pools of redundant exemplars (by language models).

Answers are stored in the file of the setting `answer_store`, which is no rule's output: a job that failed or was killed
requests only missing answers in its next run. Server and rate do not change the answers, so they are resources:
changing them reruns nothing. Jobs run on the machine where snakemake runs, since the nodes of a cluster may have no
network; the profile limits how many of them run at once, and they share the rates and daily budgets of a service.
"""

round_trip = setting("corpora.{corpus}.round_trip")  # the corpus to translate, and how


scattergather:
    round_trip=SETTINGS.round_trip.shards,


translate_shard = JobSpec(
    "data.round_trips.translate_shard",
    settings=lambda w: outside.translation(SETTINGS, w.corpus),
    cached=False,
    outside=lambda w: f"translators.{SETTINGS.round_trip_behind(w.corpus).translator}",
)


rule translate_shard:
    """Translate one part of a corpus into another language and back."""
    input:
        sentences=lambda w: f"<results>/corpora/{round_trip(w).corpus}/train.parquet",
        code=translate_shard.code,
    output:
        trips="<results>/corpora/{corpus}/round_trip/{scatteritem}.parquet",
    log:
        "<logs>/translate_shard/{corpus}/{scatteritem}.log",
    benchmark:
        "<benchmarks>/translate_shard/{corpus}/{scatteritem}.tsv"
    wildcard_constraints:
        corpus=name_pattern(blocks_with(SETTINGS.corpora, "round_trip")),
    localrule: True
    resources:
        **job_resources(gigabytes=2, hours=24),
        api_calls=1,
        service=lambda w: outside.translation_service(SETTINGS, w.corpus),
    params:
        **translate_shard.params,
    message:
        "Translate part {wildcards.scatteritem} of corpus {wildcards.corpus} there and back; log: {log}"
    shell:
        translate_shard.shell


compare_round_trips = JobSpec(
    "jobs.compare_round_trips.compare_round_trips",
    settings=outside.comparison(SETTINGS),
)


rule compare_round_trips:
    """Compare the round trips of one part with their sentences by an encoder."""
    input:
        trips="<results>/corpora/{corpus}/round_trip/{scatteritem}.parquet",
        encoder=path_if_set("<results>/encoders/{encoder}/record.json", setting("round_trip.similarity")),
        code=compare_round_trips.code,
    output:
        similarities="<results>/corpora/{corpus}/similarities/{scatteritem}.parquet",
    log:
        "<logs>/compare_round_trips/{corpus}/{scatteritem}.log",
    benchmark:
        "<benchmarks>/compare_round_trips/{corpus}/{scatteritem}.tsv"
    wildcard_constraints:
        corpus=name_pattern(blocks_with(SETTINGS.corpora, "round_trip")),
    resources:
        **job_resources(gigabytes=8, hours=4, encoders=lambda w: [SETTINGS.round_trip.similarity.encoder]),
    params:
        **compare_round_trips.params,
    message:
        "Compare part {wildcards.scatteritem} of corpus {wildcards.corpus} with its round trips; log: {log}"
    shell:
        compare_round_trips.shell


gather_round_trips = JobSpec(
    "data.round_trip_corpora.gather_round_trips",
    settings=lambda w: outside.round_trips(SETTINGS, w.corpus),
)


rule gather_round_trips:
    """Collect the round trips of a corpus that can be used for training."""
    input:
        sentences=lambda w: f"<results>/corpora/{round_trip(w).corpus}/train.parquet",
        trips=gather.round_trip("<results>/corpora/{{corpus}}/round_trip/{scatteritem}.parquet"),
        similarities=(
            gather.round_trip("<results>/corpora/{{corpus}}/similarities/{scatteritem}.parquet")
            if SETTINGS.round_trip.similarity
            else []
        ),
        code=gather_round_trips.code,
    output:
        train="<results>/corpora/{corpus}/train.parquet",
        dropped="<results>/corpora/{corpus}/dropped.parquet",
    log:
        "<logs>/gather_round_trips/{corpus}.log",
    benchmark:
        "<benchmarks>/gather_round_trips/{corpus}.tsv"
    wildcard_constraints:
        corpus=name_pattern(blocks_with(SETTINGS.corpora, "round_trip")),
    resources:
        **job_resources(gigabytes=4, minutes=15),
    params:
        **gather_round_trips.params,
    message:
        "Gather the round trips of corpus {wildcards.corpus}; log: {log}"
    shell:
        gather_round_trips.shell


write_exemplars = JobSpec(
    "data.exemplar_writing.write_exemplars",
    settings=lambda w: outside.written_pool(SETTINGS, w.pool),
    cached=False,
    outside=lambda w: f"llms.{SETTINGS.written_pool(w.pool).llm}",
)


rule write_exemplars:
    """Write a pool of exemplars with a language model."""
    input:
        words=path_if_set("<results>/corpora/{corpus}/words.parquet", setting("exemplars.{pool}")),
        encoder=path_if_set("<results>/encoders/{encoder}/record.json", setting("exemplars.{pool}")),
        prompt=path_if_set("resources/prompts/{prompt}.txt", setting("exemplars.{pool}")),
        code=write_exemplars.code,
    output:
        exemplars="<results>/exemplars/{pool}.parquet",
        dropped="<results>/exemplars/{pool}.dropped.parquet",
        usage="<results>/exemplars/{pool}.usage.parquet",
    log:
        "<logs>/write_exemplars/{pool}.log",
    benchmark:
        "<benchmarks>/write_exemplars/{pool}.tsv"
    wildcard_constraints:
        pool=name_pattern(blocks_with(SETTINGS.exemplars, "generator", "llm")),
    localrule: True
    resources:
        **job_resources(gigabytes=4, hours=4),
        api_calls=1,
        service=lambda w: as_json({"llm": SETTINGS.llms[SETTINGS.written_pool(w.pool).llm]}),
    params:
        **write_exemplars.params,
    message:
        "Write exemplars of pool {wildcards.pool} with a language model; log: {log}"
    shell:
        write_exemplars.shell


pick_exemplars = JobSpec(
    "data.exemplar_picking.pick_exemplars",
    settings=config_settings(pool="exemplars.{pool}"),
)


rule pick_exemplars:
    """Pick a pool of exemplars from the corpus itself, instead of a language model's."""
    input:
        sentences=path_if_set("<results>/corpora/{corpus}/train.parquet", setting("exemplars.{pool}")),
        words=path_if_set("<results>/corpora/{corpus}/words.parquet", setting("exemplars.{pool}")),
        encoder=path_if_set("<results>/encoders/{encoder}/record.json", setting("exemplars.{pool}")),
        code=pick_exemplars.code,
    output:
        exemplars="<results>/exemplars/{pool}.parquet",
        dropped="<results>/exemplars/{pool}.dropped.parquet",
    log:
        "<logs>/pick_exemplars/{pool}.log",
    benchmark:
        "<benchmarks>/pick_exemplars/{pool}.tsv"
    wildcard_constraints:
        pool=name_pattern(blocks_with(SETTINGS.exemplars, "generator", "extractive")),
    resources:
        **job_resources(gigabytes=4, minutes=15),
    params:
        **pick_exemplars.params,
    message:
        "Pick exemplars of pool {wildcards.pool} from its corpus; log: {log}"
    shell:
        pick_exemplars.shell
