"""The maths of a transformer, one concept a file. Nothing here imports the rest of the engine."""
