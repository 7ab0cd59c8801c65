"""Estimates of what a study would take, from its job graph alone: jobs, GPU hours, storage, requests."""
