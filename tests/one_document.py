"""The document of a file that holds one."""

from engine.documents.loaders import all_documents, parse_file


def parse_document(name, content):
    """Return the document in a file's content; raise `DocumentError` where it cannot be read."""
    [document] = all_documents(parse_file(name, content))
    return document
