"""The document of a file that holds one, and its rows."""

from engine.documents.loaders import all_documents, parse_file


def parse_document(name, content):
    """Return the document in a file's content; raise `DocumentError` where it cannot be read."""
    [document] = all_documents(parse_file(name, content))
    return document


def rows_of(document):
    """Return headings and text of each row of a table."""
    return [
        (section.headings, document.text[slice(*document.row_at(section.start))])
        for section in document.sections
        if section.is_row
    ]
