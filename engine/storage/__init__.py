"""Workspaces on the disk."""
