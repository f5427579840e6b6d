"""Readers of files, one kind a module: each turns bytes into documents and never runs or fetches anything."""
