"""The maths of a transformer, one concept a file; each backward stands under its forward."""
