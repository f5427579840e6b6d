"""Training by hand: losses, optimisers, schedules and loops; the backward passes lie in `engine.layers`."""
