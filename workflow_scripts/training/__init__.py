"""Training: settings, batches, the loop, its checkpoints."""
