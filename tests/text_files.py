"""Folders and archives of text files."""

import io
import zipfile


def write_files(folder, texts):
    """Write files of these texts into a folder; names may have folders of their own."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def packed(texts):
    """Return a .zip archive of files of these texts or bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in texts.items():
            archive.writestr(path, content)
    return buffer.getvalue()
