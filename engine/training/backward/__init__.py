"""Gradients of whole models, written by hand."""
