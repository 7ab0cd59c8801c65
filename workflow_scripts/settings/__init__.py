"""What a configuration may say: a class of settings for everything that reads a part of it, without what computes."""
