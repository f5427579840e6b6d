"""Why a question does not find a passage."""
