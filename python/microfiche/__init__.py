"""microfiche keeps an agent's conversation usable when it outgrows the model's context window."""
