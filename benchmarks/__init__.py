"""Speed and quality, one script a claim: ``python -m benchmarks.NAME [--json]``."""
