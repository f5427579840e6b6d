"""The documents as tools of assistants, by the Model Context Protocol: search, ask, list_documents.

It needs the package `mcp`, which is imported where a server is made: https://modelcontextprotocol.io.
"""

from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from ..errors import GlassboxError
from ..generation.answer_json import found_answer_json, found_json
from ..generation.passage_search import retrieve
from ..generation.settings import SearchSettings
from .asking import find
from .guard import FAILED, log_failure
from .reading import TOKEN_CHARACTERS
from .served import Searched, Served

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from starlette.applications import Starlette

INSTRUCTIONS = (
    "Searches the user's documents and answers questions from them. Every passage and answer comes with its "
    "document and the characters where it stands: quote them as the source."
)
MOST_HITS, MOST_LISTED = 50, 500


def tool_server(served: Served, searched: Searched) -> "MCPServer[Any]":
    """Return the server of the tools; its functions run in threads."""
    from mcp.server.mcpserver import MCPServer

    index, settings = searched.index, searched.settings
    most = served.encoder.max_tokens * TOKEN_CHARACTERS
    question = Field(description="A question, or what to look for, in a sentence.", max_length=most)

    def search(
        query: Annotated[str, question],
        k: Annotated[int, Field(description="How many passages.", ge=1, le=MOST_HITS)] = settings.search.k,
    ) -> dict[str, Any]:
        """Find the passages of the user's documents that are closest to a query, best first.

        Each has its document, the characters where it stands, its headings, text and score.
        """
        wanted = SearchSettings(k, settings.search.min_relevance, settings.search.retriever)
        return found_json(query, retrieve(query, index, served.encoder, wanted, searched.null_scores))

    def ask(question: Annotated[str, question]) -> dict[str, Any]:
        """Answer a question from the user's documents: the words that answer, quotes, and how sure they are.

        `answer` is null where no few words answer, `status` is "refused" where no passage does.
        """
        answer, _ = find(question, (), settings, served, searched)
        return found_answer_json(answer)

    def list_documents(
        first: Annotated[int, Field(description="Where the list begins, from 0.", ge=0)] = 0,
    ) -> dict[str, Any]:
        """List the names of the user's documents, and how many passages each has."""
        rows = range(len(index.chunks)) if index.allowed is None else index.allowed.tolist()
        counts = Counter(index.chunks[row].document for row in rows)
        shown = list(counts.items())[first : first + MOST_LISTED]
        return {"n_documents": len(counts), "documents": [{"name": n, "passages": c} for n, c in shown]}

    server = MCPServer[Any]("glassbox", instructions=INSTRUCTIONS, log_level="WARNING")
    for tool in (search, ask, list_documents):
        server.add_tool(with_one_line(tool))
    return server


def with_one_line(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return a tool whose errors are one line for the assistant, and one on standard error if it failed."""
    from mcp.server.mcpserver.exceptions import ToolError

    @wraps(tool)
    def run(*arguments: Any, **named: Any) -> dict[str, Any]:
        try:
            return tool(*arguments, **named)
        except GlassboxError as error:
            raise ToolError(str(error)) from error
        except Exception as error:  # of any kind, as in the routes
            log_failure(f"/mcp, {tool.__name__}", error)
            raise ToolError(FAILED) from error

    return run


def tool_app(served: Served, searched: Searched) -> "Starlette":
    """Return the application of the tools over HTTP, at ``/mcp``; it keeps nothing between requests."""
    from mcp.server.transport_security import TransportSecuritySettings

    checked_before = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # by `Guard`
    return tool_server(served, searched).streamable_http_app(
        json_response=True, stateless_http=True, transport_security=checked_before
    )
