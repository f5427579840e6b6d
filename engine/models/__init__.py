"""The models, each written once from the layers."""
