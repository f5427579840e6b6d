"""Differences between poolings, and similarities as sums of contributions."""
