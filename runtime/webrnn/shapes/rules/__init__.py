"""What is known of an op's outputs when something is known of its inputs, one module a family of ops."""
