"""Finished models: their cards, made when they are asked for by name, and the end of those that a study does not keep.

Inputs:  <results>/runs/{run}/seed{seed}/model/record.json, and history.parquet of a trained run,
         <results>/scores/{kind}/{suite}/{run}/seed{seed}.parquet of every suite and seed of the run
Outputs: <results>/runs/{run}/seed{seed}/README.md; the model folder itself stays as it is
         <results>/runs/{run}/dropped_weights.parquet, where `keep_models` is `none`: the weights that were deleted
Target:  `snakemake model_cards`: the cards of all runs
"""


rule write_model_card:
    """What a model is, what made it, what it scores and how to load it."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        scores=lambda w: run(w).scores,
        history=branch(lambda w: run(w).corpus, then="<results>/runs/{run}/seed{seed}/history.parquet"),
        template="resources/report/model_card.md.j2",
        code=code("reporting.model_card", lambda w: [f"methods.{run(w).method['module']}"]),
    output:
        card="<results>/runs/{run}/seed{seed}/README.md",
    log:
        "<logs>/write_model_card/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/write_model_card/{run}/seed{seed}.tsv"
    localrule: True
    resources:
        **ask(2, minutes=10),
    params:
        **call(
            "reporting.model_card",
            lambda w: reporting.card(run(w)),
            lambda w: [f"methods.{run(w).method['module']}"],
        ),
    shell:
        command("write_model_card")


rule model_cards:
    """Cards of all runs and seeds."""
    input:
        STUDY.of_runs("<results>/runs/{run}/seed{seed}/README.md"),


rule drop_models:
    """Delete the weights of a run's models, once everything is made from them."""
    input:
        lambda w: READERS.get(w.run, []),
        lambda w: run(w).models,
        code=code("jobs.drop_models"),
    output:
        dropped="<results>/runs/{run}/dropped_weights.parquet",
    log:
        "<logs>/drop_models/{run}.log",
    benchmark:
        "<benchmarks>/drop_models/{run}.tsv"
    priority: 50  # disk that is free before the next training begins
    localrule: True
    resources:
        **ask(2, minutes=10),
    params:
        **call("jobs.drop_models", parts(run, "seeds")),
    shell:
        command("drop_models")
