"""Semblance: a pipeline that trains, evaluates and compares sentence-embedding methods under equal conditions."""
