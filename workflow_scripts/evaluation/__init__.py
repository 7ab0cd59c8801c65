"""Evaluators, one module for each kind: they return scores in long form of an encoder or its vectors.

``evaluation.base`` defines their interface.
"""
