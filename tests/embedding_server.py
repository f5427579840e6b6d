"""An OpenAI-compatible server of embeddings on this machine, for tests of whoever talks to one."""

from http.server import ThreadingHTTPServer

from tests.chat_server import Handler, running


def numbered(vectors):
    """What OpenAI's own servers send, the vectors from last to first: their order is that of `index`."""
    data = [
        {"object": "embedding", "index": place, "embedding": [float(number) for number in vector]}
        for place, vector in enumerate(vectors)
    ]
    return {"object": "list", "model": "mini", "data": data[::-1], "usage": {"prompt_tokens": 1}}


class EmbeddingsServer(ThreadingHTTPServer):
    """Embeds by `embed`, a function of texts.

    `answer` changes the content for request n, and `status` gives it a status and a message.
    """

    daemon_threads = True

    def __init__(self, embed, answer=None, status=None, key=None, models=("mini",)):
        super().__init__(("127.0.0.1", 0), EmbeddingsHandler)
        self.embed, self.answer, self.status, self.key, self.models = embed, answer, status, key, models
        self.requests = []

    @property
    def host(self):
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def address(self):
        return f"{self.host}#mini"

    @property
    def texts(self):
        """All texts that were asked for, the first of which told the length of vectors."""
        return [text for body in self.requests for text in body["input"]]


class EmbeddingsHandler(Handler):
    def do_POST(self):
        if (body := self.asked("/v1/embeddings")) is None:
            return
        n_before = len(self.server.requests) - 1
        status, message = (self.server.status or (lambda *_: (200, "")))(n_before, body["input"])
        if status != 200:
            self.reply({"error": {"message": message}}, status)
            return
        content = numbered(self.server.embed(body["input"]))
        self.reply(self.server.answer(n_before, content) if self.server.answer else content)


def embedding_server(embed, **settings):
    return running(EmbeddingsServer(embed, **settings))
