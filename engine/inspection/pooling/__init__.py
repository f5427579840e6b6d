"""How poolings differ, and what a similarity is made of."""
