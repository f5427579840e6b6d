"""Workspaces and the SQLite files that hold them."""
