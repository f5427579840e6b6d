"""The inside of a model: attention, layers, positions, token limits, parts taken out."""
