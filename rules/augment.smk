"""From corpora to round trips (by translators) and pools of redundant exemplars (by language models).

Answers are kept in the file that the setting `answers` names, which is not an output of any rule: a job that fails or
is killed requests only what is missing when it runs again. Who is asked and how fast decides no answer, so it is a
resource: changing it reruns nothing. Jobs run on the machine where snakemake runs, since the nodes of a cluster may have
no network; the profile limits how many of them run at once, and they share the rates and daily budgets of a service.
"""

trip = block("corpora.{corpus}.round_trip")


scattergather:
    round_trip=SETTINGS.round_trip.shards,


rule translate_shard:
    """Translate one part of a corpus into another language and back."""
    input:
        sentences=lambda w: f"<results>/corpora/{trip(w).corpus}/train.parquet",
        code=code("data.round_trips"),
    output:
        trips="<results>/corpora/{corpus}/round_trip/{scatteritem}.parquet",
    log:
        "<logs>/translate_shard/{corpus}/{scatteritem}.log",
    benchmark:
        "<benchmarks>/translate_shard/{corpus}/{scatteritem}.tsv"
    wildcard_constraints:
        corpus=one_of(having(SETTINGS.corpora, "round_trip")),
    localrule: True
    resources:
        **ask(2, hours=24),
        api_calls=1,
        service=lambda w: outside.translation_service(SETTINGS, w.corpus),
    params:
        **call("data.round_trips", lambda w: outside.translation(SETTINGS, w.corpus)),
    shell:
        command("translate_shard")


rule gather_round_trips:
    """Round trips of a corpus that may be trained on."""
    input:
        sentences=lambda w: f"<results>/corpora/{trip(w).corpus}/train.parquet",
        trips=gather.round_trip("<results>/corpora/{{corpus}}/round_trip/{scatteritem}.parquet"),
        code=code("data.round_trip_corpora"),
    output:
        train="<results>/corpora/{corpus}/train.parquet",
        dropped="<results>/corpora/{corpus}/dropped.parquet",
    log:
        "<logs>/gather_round_trips/{corpus}.log",
    benchmark:
        "<benchmarks>/gather_round_trips/{corpus}.tsv"
    wildcard_constraints:
        corpus=one_of(having(SETTINGS.corpora, "round_trip")),
    resources:
        **ask(4, minutes=15),
    params:
        **call("data.round_trip_corpora", lambda w: outside.round_trips(SETTINGS, w.corpus)),
    shell:
        command("gather_round_trips")


rule write_exemplars:
    """A pool of exemplars written by a language model."""
    input:
        words=filled("<results>/corpora/{corpus}/words.parquet", block("exemplars.{pool}")),
        encoder=filled("<results>/encoders/{encoder}/record.json", block("exemplars.{pool}")),
        prompt=filled("resources/prompts/{prompt}.txt", block("exemplars.{pool}")),
        code=code("data.exemplar_writing"),
    output:
        exemplars="<results>/exemplars/{pool}.parquet",
        dropped="<results>/exemplars/{pool}.dropped.parquet",
        usage="<results>/exemplars/{pool}.usage.parquet",
    log:
        "<logs>/write_exemplars/{pool}.log",
    benchmark:
        "<benchmarks>/write_exemplars/{pool}.tsv"
    wildcard_constraints:
        pool=one_of(having(SETTINGS.exemplars, "generator", "llm")),
    localrule: True
    resources:
        **ask(4, hours=4),
        api_calls=1,
        service=lambda w: as_json({"llm": SETTINGS.llms[SETTINGS.written_pool(w.pool).llm]}),
    params:
        **call("data.exemplar_writing", lambda w: outside.written_pool(SETTINGS, w.pool)),
    shell:
        command("write_exemplars")


rule pick_exemplars:
    """A pool of exemplars picked from the corpus itself, in place of a language model's."""
    input:
        sentences=filled("<results>/corpora/{corpus}/train.parquet", block("exemplars.{pool}")),
        words=filled("<results>/corpora/{corpus}/words.parquet", block("exemplars.{pool}")),
        encoder=filled("<results>/encoders/{encoder}/record.json", block("exemplars.{pool}")),
        code=code("data.exemplar_picking"),
    output:
        exemplars="<results>/exemplars/{pool}.parquet",
        dropped="<results>/exemplars/{pool}.dropped.parquet",
    log:
        "<logs>/pick_exemplars/{pool}.log",
    benchmark:
        "<benchmarks>/pick_exemplars/{pool}.tsv"
    wildcard_constraints:
        pool=one_of(having(SETTINGS.exemplars, "generator", "extractive")),
    resources:
        **ask(4, minutes=15),
    params:
        **call("data.exemplar_picking", settings(pool="exemplars.{pool}")),
    shell:
        command("pick_exemplars")
