"""What a GPU must be seen to do before a study is trusted to it, a module a question.

Needs neither Snakemake, data, weights nor a network: encoders are made of their configuration with random weights, and
sentences of made-up words.
"""
