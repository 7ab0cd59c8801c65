"""Evaluators: an encoder or its vectors in, scores in long form out; one module per kind of evaluation.

``evaluation.base`` defines their interface.
"""
