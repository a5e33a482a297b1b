"""What is known of each op, whoever asks."""
