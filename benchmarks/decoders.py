"""The decoders that ``benchmarks.decode`` compares, each run in a process of its own.

``python -m benchmarks.decoders NAME FILE.gguf``: loads a decoder, and says so on standard output; then
continues the prompts of the orders on standard input, a JSON object a line. Each imports only what it
needs, since memory is part of the comparison.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.processes import CORES, memory

CONTEXT = 1024
# Prompt and number of new tokens in; the greedy tokens one by one.
Generate = Callable[[Sequence[int], int], Iterator[int]]
# Token ids in; logits (n_tokens, vocab_size) out.
Logits = Callable[[Sequence[int]], Any]


def ours(file: str, compiled: bool = True, prompt_lookup: bool = True) -> tuple[Generate, Logits]:
    """Load Glassbox, as its app uses it, token by token, or the readable NumPy path."""
    from engine import Decoder

    decoder = Decoder.load(file, compiled=compiled)

    def generate(ids: Sequence[int], n_new: int) -> Iterator[int]:
        steps = decoder.generate(ids, max_new_tokens=n_new, prompt_lookup=prompt_lookup)
        return (step.token_id for step in steps)

    return generate, decoder.logits


def transformers(file: str) -> tuple[Generate, Logits]:
    """Load transformers in float32; the loop is the shortest that its cache allows."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(CORES)
    path = Path(file)
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()

    def generate(ids: Sequence[int], n_new: int) -> Iterator[int]:
        unread, cache = torch.tensor([list(ids)]), None
        for _ in range(n_new):
            with torch.inference_mode():
                step = model(unread, past_key_values=cache, use_cache=True, logits_to_keep=1)
            unread, cache = step.logits[:, -1:].argmax(-1), step.past_key_values
            yield int(unread[0, 0])

    def logits(ids: Sequence[int]) -> Any:
        with torch.inference_mode():
            return model(torch.tensor([list(ids)])).logits[0].numpy()

    return generate, logits


def llama_cpp(file: str) -> tuple[Generate, Logits]:
    """Load llama.cpp; its logits are read in place, and the largest is chosen."""
    import llama_cpp
    import numpy as np

    def load(logits_all: bool) -> Any:
        return llama_cpp.Llama(
            file, n_ctx=CONTEXT, n_threads=CORES, n_threads_batch=CORES, logits_all=logits_all, verbose=False
        )

    model = load(logits_all=False)

    def generate(ids: Sequence[int], n_new: int) -> Iterator[int]:
        model.reset()
        unread = list(ids)
        for _ in range(n_new):
            model.eval(unread)
            last = llama_cpp.llama_get_logits_ith(model.ctx, -1)
            unread = [int(np.ctypeslib.as_array(last, (model.n_vocab(),)).argmax())]
            yield unread[0]

    def logits(ids: Sequence[int]) -> Any:
        every = load(logits_all=True)
        every.eval(list(ids))
        return every.scores[: len(ids)]

    return generate, logits


CONTESTANTS: dict[str, Callable[[str], tuple[Generate, Logits]]] = {
    "glassbox": ours,
    "glassbox, no prompt lookup": lambda file: ours(file, prompt_lookup=False),
    "glassbox, NumPy only": lambda file: ours(file, compiled=False),
    "transformers float32": transformers,
    "llama.cpp": llama_cpp,
}


def main() -> None:
    """Serve one contestant."""
    name, file = sys.argv[1:]
    generate, logits = CONTESTANTS[name](file)
    print("{}", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "logits" in order:
            import numpy as np

            np.save(order["logits"], logits(order["ids"]))
            print(json.dumps({}), flush=True)
            continue
        tokens, times = [], [time.perf_counter()]
        for token in generate(order["ids"], order["n_new"]):
            tokens.append(token)
            times.append(time.perf_counter())
        answer = {"tokens": tokens, "first_s": times[1] - times[0], "rest_s": times[-1] - times[1]}
        print(json.dumps(answer | {"peak_mb": memory("VmHWM")}), flush=True)


if __name__ == "__main__":
    main()
