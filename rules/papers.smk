"""Targets by paper, such as `snakemake jtcse`: its tables and figures, without the page.

Included last, since a paper's name must not be that of another rule.
"""

from workflow_scripts.graph.targets import check_papers

if "extraction" in config["experiments"]:

    rule extraction:
        """Tables and figures of the extraction study."""
        input:
            EXTRACTION.tables,
            FIGURES.drawn("extraction"),


check_papers(workflow, STUDY)

for paper in sorted({paper_of(name) for name in STUDY.grids}):

    rule:
        """Tables and figures of one paper."""
        name:
            paper
        input:
            collect("<results>/tables/{grid.name}.parquet", grid=STUDY.of_paper(paper)),
            collect("<benchmarks>/tabulate_times/{grid.name}.parquet", grid=STUDY.of_paper(paper, timed=True)),
            FIGURES.drawn(paper),
