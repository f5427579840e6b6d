"""Question sets: the bundled ones, uploaded files and labels kept in a session."""
