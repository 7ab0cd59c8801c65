"""Cards of finished models, made by `snakemake model_cards`."""

write_model_card = JobSpec(
    "reporting.model_card.write_model_card",
    settings=lambda w: reporting.card(run(w)),
    imports=lambda w: [f"methods.{run(w).method.module}"],
)


rule write_model_card:
    """Write a model's card: description, origin, scores, and how to load it."""
    input:
        model="<results>/runs/{run}/seed{seed}/model/record.json",
        scores=lambda w: run(w).scores,
        history=branch(lambda w: run(w).corpus, then="<results>/runs/{run}/seed{seed}/history.parquet"),
        template="resources/report/model_card.md.j2",
        citations="resources/report/CITATION.cff",
        code=write_model_card.code,
    output:
        "<results>/runs/{run}/seed{seed}/card/README.md",
        record="<results>/runs/{run}/seed{seed}/card/record.json",
    log:
        "<logs>/write_model_card/{run}/seed{seed}.log",
    benchmark:
        "<benchmarks>/write_model_card/{run}/seed{seed}.tsv"
    localrule: True
    resources:
        **job_resources(gigabytes=2, minutes=10),
    params:
        **write_model_card.params,
    message:
        "Write the model card of {wildcards.run} (seed {wildcards.seed}); log: {log}"
    shell:
        write_model_card.shell


rule model_cards:
    """Write the cards of all runs and seeds."""
    input:
        STUDY.per_run("<results>/runs/{run}/seed{seed}/card/README.md"),
