"""Training: batches, the loop, its steps and checkpoints."""
