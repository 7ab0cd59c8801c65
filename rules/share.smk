"""Cards of finished models, made by `snakemake model_cards`."""


rule write_model_card:
    """What a model is, what made it, what it scores and how to load it."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        scores=lambda w: run(w).scores,
        history=branch(lambda w: run(w).corpus, then="<results>/runs/{run}/seed{seed}/history.parquet"),
        template="resources/report/model_card.md.j2",
        code=code("reporting.model_card", lambda w: [f"methods.{run(w).method.module}"]),
    output:
        card="<results>/runs/{run}/seed{seed}/README.md",
    log:
        "<logs>/write_model_card/{run}/seed{seed}.log",
    localrule: True
    resources:
        **ask(2, minutes=10),
    params:
        **call(
            "reporting.model_card",
            lambda w: reporting.card(run(w)),
            lambda w: [f"methods.{run(w).method.module}"],
        ),
    shell:
        command("write_model_card")


rule model_cards:
    """Cards of all runs and seeds."""
    input:
        STUDY.per_run("<results>/runs/{run}/seed{seed}/README.md"),
