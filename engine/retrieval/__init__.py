"""Embed chunks, index them, find the nearest to a question."""
