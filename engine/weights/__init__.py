"""Where model files come from, and how their tensors are read."""
