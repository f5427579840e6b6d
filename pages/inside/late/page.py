"""Late chunking compared with ordinary chunking."""

from pages.inside.late.late_chunking import show_late
from ui.documents import NoDocumentError
from ui.models import load_encoder
from ui.settings import chunks_sidebar

encoder = load_encoder()
documents, cut = chunks_sidebar(encoder)
if not documents:
    raise NoDocumentError
show_late(documents, encoder, cut)
