"""Documents cut into chunks for the model that embeds them."""

from collections.abc import Sequence

from engine.documents.document import Chunk, Document
from engine.documents.splitters import Splitting, split, split_small_to_big
from engine.layers.tracing import Array
from engine.models.encoder import Encoder
from engine.retrieval.embedding_model import Model, encode_by


def cut_documents(
    documents: Sequence[Document], model: Model, splitting: Splitting, parent_tokens: int = 0
) -> list[list[Chunk]]:
    """Cut documents by the model's tokenizer; return the chunks of each.

    With ``parent_tokens`` each chunk has a larger one of this size around it. The semantic splitter compares
    sentences by the model.
    """

    def embed(sentences: Sequence[str]) -> Array:
        if isinstance(model, Encoder):
            return model.encode(sentences)
        return encode_by(model.embedding_spec(), "document", sentences, model)

    def cut(document: Document) -> list[Chunk]:
        if parent_tokens:
            return split_small_to_big(document, model.tokenizer, splitting, parent_tokens, embed=embed)
        return split(document, model.tokenizer, splitting, embed=embed)

    return [cut(document) for document in documents]
