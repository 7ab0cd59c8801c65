"""Tests that a card runs (``make gpu-test``)."""
