"""What ops that are made of others stand for: one function an op, see expand_ops."""
