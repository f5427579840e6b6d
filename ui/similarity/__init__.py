"""The similarity of two texts, token pair by token pair."""
