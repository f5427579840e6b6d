"""Workspaces and indexes on the disk."""
