"""Documents cut into chunks for the model that embeds them."""

from collections.abc import Sequence

from engine.documents.document import Chunk, Document
from engine.documents.splitters import Splitting, split
from engine.layers.tracing import Array
from engine.retrieval.embedding_model import Model, embedding_spec, encode_by


def cut_documents(
    documents: Sequence[Document], model: Model, splitting: Splitting, parent_tokens: int = 0
) -> list[list[Chunk]]:
    """Cut documents by the model's tokenizer; return the chunks of each.

    With ``parent_tokens`` each chunk has a larger one of this size around it. The semantic splitter compares
    sentences by the model.
    """

    def embed(sentences: Sequence[str]) -> Array:
        if (encoder := model.as_encoder) is not None:
            return encoder.encode(sentences)
        return encode_by(embedding_spec(model), "document", sentences, model)

    return [
        split(document, model.tokenizer, splitting, embed, parent_tokens=parent_tokens)
        for document in documents
    ]
