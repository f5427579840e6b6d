"""Settings as a script in other libraries."""
