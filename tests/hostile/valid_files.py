"""Small valid files of the kinds that the engine reads, which mutations start from."""

import json
import struct
from dataclasses import replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import docx
import numpy as np
import openpyxl
import pptx
import pyarrow as pa
from pyarrow import parquet
from safetensors.numpy import save_file
from scipy.sparse import csc_matrix

from engine.documents.document import Chunk, Document, Section
from engine.documents.splitters import Splitting
from engine.layers.norm import l2_normalize
from engine.retrieval.embedding_spec import EmbeddingSpec
from engine.retrieval.index import index_vectors
from engine.retrieval.index_choice import Choice
from engine.retrieval.index_kinds import build_ann
from engine.retrieval.sparse_index import SparseIndex
from engine.retrieval.stored.index_folder import IndexSettings, StoredIndex, read_manifest, save_index
from engine.retrieval.stored.index_rows import IndexedFile
from engine.storage.workspace import SavedRun, Workspace, export_workspace
from engine.tokenizers.bpe_vocabulary import byte_characters
from tests.hostile.test_documents import WORD, pdf
from tests.hostile.test_gguf import F32, LIST, STRING, U32, file_of, key, listed, place, text
from tests.hostile.test_model_folders import BERT, D_MODEL, N_IDS, write_model
from tests.indexes import sign
from tests.text_files import packed

CHAT = (
    "{% for message in messages %}{{ '<|' ~ message['role'] ~ '|>' ~ message.content | trim ~ eos_token }}\n"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(chr, range(97, 123)), "the", "##t", "cat"]
# What the tokenizer of BERT does, written out.
WORDPIECE = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [
        {"id": number, "content": WORDS[number], "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for number in range(5)
    ],
    "normalizer": {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    },
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    "model": {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": {word: number for number, word in enumerate(WORDS)},
    },
}
UNIGRAM = WORDPIECE | {
    "added_tokens": [],
    "normalizer": {
        "type": "Sequence",
        "normalizers": [
            {"type": "NFC"},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
            {"type": "Strip", "strip_left": False, "strip_right": True},
        ],
    },
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}},
    },
    "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    "model": {
        "type": "Unigram",
        "unk_id": 1,
        "vocab": [
            *(["<s>", 0.0], ["<unk>", 0.0], ["▁", -2.0], ["▁the", -1.0]),
            *([letter, -3.5] for letter in "abcdeht"),
        ],
        "byte_fallback": False,
    },
}
SPECIAL = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"} | dict.fromkeys(
    ("cls_token", "sep_token", "pad_token"), "<s>"
)
TOKENIZERS = {"WordPiece": WORDPIECE, "Unigram": UNIGRAM}
QUESTIONS = [
    {
        "question": "Who pulls the sea?",
        "references": [{"content": "The moon", "start_index": 0, "end_index": 8}],
        "corpus_id": "a",
    },
    {"question": "And when, “exactly”?", "references": [], "corpus_id": "b"},
]


def files_of(write):
    """Name and content of the files that a function writes into a folder."""
    with TemporaryDirectory() as folder:
        write(Path(folder))
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def decoder_folder():
    files = files_of(write_model) | {"tokenizer_config.json": json.dumps({"chat_template": CHAT}).encode()}
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    options = {
        "rope_scaling": scaling | {"original_max_position_embeddings": 32},
        "rope_theta": 1e4,
        "use_sliding_window": True,
        "sliding_window": 8,
        "max_window_layers": 0,
        "layer_types": ["sliding_attention"],
        "head_dim": 4,
        "hidden_act": "silu",
        "bos_token_id": 1,
        "eos_token_id": [2, 3],
    }
    return files | {"config.json": json.dumps(json.loads(files["config.json"]) | options).encode()}


def encoder_folder(tokenizer):
    """A BERT model of one layer and random weights."""

    def write(folder):
        (folder / "config.json").write_text(json.dumps(BERT))
        (folder / "tokenizer.json").write_text(json.dumps(TOKENIZERS[tokenizer]))
        if tokenizer == "Unigram":
            (folder / "tokenizer_config.json").write_text(json.dumps(SPECIAL))
        rng, tensors = np.random.default_rng(0), {}

        def dense(name, n_out, n_in):
            tensors[f"{name}.weight"] = rng.normal(size=(n_out, n_in)).astype(np.float32)
            tensors[f"{name}.bias"] = np.zeros(n_out, np.float32)

        def norm(name):
            tensors[f"{name}.weight"], tensors[f"{name}.bias"] = (
                np.ones(D_MODEL, "f4"),
                np.zeros(D_MODEL, "f4"),
            )

        for name, n_rows in (("word", N_IDS), ("position", 64), ("token_type", 2)):
            tensors[f"embeddings.{name}_embeddings.weight"] = rng.normal(size=(n_rows, D_MODEL)).astype("f4")
        norm("embeddings.LayerNorm")
        layer = "encoder.layer.0"
        for name in ("attention.self.query", "attention.self.key", "attention.self.value"):
            dense(f"{layer}.{name}", D_MODEL, D_MODEL)
        for name in ("attention.output", "output"):
            dense(f"{layer}.{name}.dense", D_MODEL, D_MODEL)
            norm(f"{layer}.{name}.LayerNorm")
        dense(f"{layer}.intermediate.dense", D_MODEL, D_MODEL)
        save_file(tensors, folder / "model.safetensors")

    return files_of(write)


def gguf_parts():
    """The metadata and the tensors of a Qwen2 model of one layer: (name, type, value) and (name, shape)."""

    def number(value):
        return U32, struct.pack("<I", value)

    def texts(values):
        return LIST, listed(STRING, len(values), b"".join(map(text, values)))

    sizes = {"block_count": 1, "context_length": 64, "embedding_length": 32, "feed_forward_length": 32}
    sizes |= {"attention.head_count": 2, "attention.head_count_kv": 1}
    keys = {
        "general.architecture": (STRING, text("qwen2")),
        **{f"qwen2.{name}": number(value) for name, value in sizes.items()},
        "qwen2.attention.layer_norm_rms_epsilon": (F32, struct.pack("<f", 1e-6)),
        "qwen2.rope.freq_base": (F32, struct.pack("<f", 1e4)),
        "qwen2.rope.scaling.type": (STRING, text("linear")),
        "qwen2.rope.scaling.factor": (F32, struct.pack("<f", 2)),
        "tokenizer.ggml.model": (STRING, text("gpt2")),
        "tokenizer.ggml.pre": (STRING, text("qwen2")),
        "tokenizer.ggml.tokens": texts([*(byte_characters()[byte] for byte in range(N_IDS)), "th", "the"]),
        "tokenizer.ggml.token_type": (LIST, listed(5, N_IDS + 2, struct.pack("<i", 1) * (N_IDS + 2))),
        "tokenizer.ggml.merges": texts(["t h", "th e"]),
        "tokenizer.ggml.bos_token_id": number(1),
        "tokenizer.ggml.eos_token_id": number(0),
        "tokenizer.ggml.add_bos_token": (7, b"\1"),
        "tokenizer.chat_template": (STRING, text(CHAT)),
    }
    shapes = {"token_embd": (32, N_IDS + 2), "output_norm": (32,)}
    shapes |= {f"blk.0.{part}_norm": (32,) for part in ("attn", "ffn")}
    shapes |= {"blk.0.attn_q": (32, 32), "blk.0.attn_k": (32, 16), "blk.0.attn_v": (32, 16)}
    shapes |= {f"blk.0.{part}": (32, 32) for part in ("attn_output", "ffn_gate", "ffn_up", "ffn_down")}
    tensors = {f"{name}.weight": shape for name, shape in shapes.items()}
    tensors |= {f"blk.0.attn_{part}.bias": (n,) for part, n in (("q", 32), ("k", 16), ("v", 16))}
    return [(name, *value) for name, value in keys.items()], list(tensors.items())


def gguf_file(change=lambda keys, tensors: None):
    """The file of `gguf_parts` with a change to the keys and to (name, shape, start, type) of the tensors."""
    keys, tensors = gguf_parts()
    placed, data, rng = [], b"", np.random.default_rng(0)
    for name, shape in tensors:
        placed.append([name, shape, len(data), 0])
        data += rng.normal(size=shape[::-1]).astype(np.float32).tobytes()
    change(keys, placed)
    return file_of([key(*one) for one in keys], [place(*one) for one in placed], data=data)


def workspace_file():
    sections = (Section(0, ("One",)), Section(18, ("Two",)))
    source = Document("a.md", "# One\nAlpha beta\n\n# Two\nGamma", "One", sections)
    chunks = [Chunk("a.md", 0, 16, source.text[:16], 4, ("One",)), Chunk("a.md", 18, 29, source.text[18:], 3)]
    vectors = np.eye(2, 4, dtype=np.float32)
    index = index_vectors(chunks, vectors, EmbeddingSpec("model", "mean", 256, 4))
    runs = (SavedRun("run", "2024-05-01T10:00:00", {"recall": 0.5, "rows": [1, None]}),)
    settings = {"top": 3, "pooling": "mean"}
    return export_workspace(Workspace((source,), settings, index, {"own": QUESTIONS}, runs))


def stored_index():
    """Two files of one document each, their chunks, and random vectors of 8 numbers."""
    rng = np.random.default_rng(0)
    documents = [
        Document(
            "a.md", "# One\nAlpha beta\n\n# Two\nGamma", "One", (Section(0, ("One",)), Section(18, ("Two",)))
        ),
        Document("b.txt", "Delta beta.", date="2026-05-01", tags=("x",)),
    ]
    around = Chunk("a.md", 0, 29, documents[0].text, 9)
    chunks = [
        Chunk("a.md", 0, 16, documents[0].text[:16], 4, ("One",), parent=around),
        Chunk("a.md", 18, 29, documents[0].text[18:], 3, ("Two",), 1, around),
        Chunk("b.txt", 0, 11, documents[1].text, 4),
    ]
    vectors = l2_normalize(rng.normal(size=(3, 8)).astype(np.float32))
    spec = EmbeddingSpec("m", "idf", 32, 8, "model")
    index = index_vectors(chunks, vectors, spec, np.ones(50, "f4"), documents)
    weights = csc_matrix(np.array([[0, 0.5, 1], [2, 0, 0], [0, 1, 0.1]], np.float32))
    index = replace(index, ann=build_ann(vectors, "hnsw"), expanded=SparseIndex(weights, "f"))
    files = (
        IndexedFile("a.md", "0" * 64, (documents[0],), tuple(chunks[:2])),
        IndexedFile("b.txt", "1" * 64, (documents[1],), (chunks[2],)),
    )
    settings = IndexSettings("model", Splitting(chunk_tokens=32), 64, "idf")
    unrelated = l2_normalize(rng.normal(size=(40, 8)).astype(np.float32))
    return StoredIndex(settings, "corpus", files, index, unrelated, Choice("hnsw", "hnsw", "as asked", ()))


def index_folder():
    """The manifest of an index folder, and the files of its state by name, for `write_index`."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        save_index(folder, stored_index())
        manifest = read_manifest(folder)
        files = {path.name: path.read_bytes() for path in (folder / manifest["state"]).iterdir()}
        return manifest, files


def write_index(folder, manifest, files):
    """Write an index folder whose manifest has the checksums of the files."""
    state = folder / str(manifest.get("state"))[:50].replace("/", "").replace("\0", "")
    state.mkdir(exist_ok=True)
    for name, content in files.items():
        (state / name).write_bytes(content)
    manifest = manifest | {"files": {name: sha256(content).hexdigest() for name, content in files.items()}}
    sign(folder, manifest)


def vector_rows():
    """The columns of a file of chunks with their vectors."""
    vectors = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
    texts = ["Alpha beta.", "Gamma δ", "more"]
    return {
        "document": ["a.md", "a.md", "b.md"],
        "start": [0, 12, 0],
        "end": [11, 19, 4],
        "text": texts,
        "vector": list(map(list, vectors)),
    }


def parquet_file():
    file = BytesIO()
    parquet.write_table(pa.table(vector_rows()), file)
    return file.getvalue()


def npz_file():
    rows, file = vector_rows(), BytesIO()
    texts = [text.encode() for text in rows["text"]]
    np.savez(
        file,
        documents=np.array(rows["document"]),
        starts=np.array(rows["start"]),
        ends=np.array(rows["end"]),
        text=np.frombuffer(b"".join(texts), np.uint8),
        text_starts=np.cumsum([0, *map(len, texts)]),
        vectors=np.array(rows["vector"], np.float32),
    )
    return file.getvalue()


def word_file():
    document, file = docx.Document(), BytesIO()
    document.add_heading("One", 1)
    document.add_paragraph("Alpha beta")
    table = document.add_table(2, 2)
    table.cell(0, 0).text, table.cell(1, 1).text = "a", "b"
    document.save(file)
    return file.getvalue()


def office_file(kind):
    file = BytesIO()
    if kind == "xlsx":
        book = openpyxl.Workbook()
        for row in (["Item", "Price"], ["Alpha", 1.5], ["Beta", None]):
            book.active.append(row)
        book.active.merge_cells("A2:A3")
        book.save(file)
    else:
        show = pptx.Presentation()
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = "One", "Alpha"
        slide.shapes.add_table(1, 2, 0, 0, 99, 99).table.cell(0, 0).text = "a"
        show.save(file)
    return file.getvalue()


URN = "urn:oasis:names:tc:opendocument:xmlns"
OPEN_TEXT = (
    f'<o:d xmlns:o="{URN}:office:1.0" xmlns:text="{URN}:text:1.0" xmlns:t="{URN}:table:1.0"><o:body><o:text>'
    '<text:h text:outline-level="1">One</text:h><text:p>Alpha <text:s text:c="2"/></text:p><t:table>'
    '<t:table-row><t:table-cell t:number-columns-repeated="2"><text:p>a</text:p></t:table-cell></t:table-row>'
    "</t:table></o:text></o:body></o:d>"
)
CONTAINER = '<c xmlns="x"><rootfile full-path="b.opf"/></c>'
PACKAGE = (
    '<p xmlns="x"><metadata><title>T</title></metadata><manifest><item id="a" href="c.html"/></manifest>'
    '<spine><itemref idref="a"/></spine></p>'
)
MAIL = b"""From: a@x.org
Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="B"

--B
Content-Type: text/plain; charset=utf-8

Alpha beta
--B
Content-Type: text/csv; name="a.csv"
Content-Disposition: attachment; filename="a.csv"

a,b
1,2
--B--
"""
WORD_XML = WORD.format(
    '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>One</w:t></w:r></w:p><w:p><w:r><w:t>a</w:t>'
    "<w:br/></w:r></w:p><w:tbl><w:tr><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
).encode()
LABELLED = b'question,passage,document\nWho?,The moon.,a\n"When, and where?","At noon",\n'
JSONL = "".join(json.dumps(question) + "\n" for question in QUESTIONS).encode()
MARKDOWN = "# One\n\nAlpha *beta* `x`\n\n```py\n# no\n```\n\n## Two\nGamma €\n".encode()
PAGE = (
    b"<!DOCTYPE html><html><head><meta charset=utf-8><title>T</title><script>x</script></head><body>"
    b"<h1>One</h1><p>Alpha <b>beta</b> &amp; &#8364;</p><ul><li>a<li>b</ul><table><tr><td>1<td>2</table>"
    b"<pre>x\n y</pre>"
    b"<svg><text>no</text></svg></body></html>"
)
NOTEBOOK = json.dumps(
    {
        "cells": [
            {"cell_type": "markdown", "source": ["# One\n", "text"], "metadata": {}},
            {"cell_type": "code", "source": "x = 1", "outputs": [{"text": "1"}], "execution_count": 1},
        ],
        "metadata": {"kernelspec": {"name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
).encode()
DOCUMENTS = {
    "a.txt": "Alpha beta.\r\n\r\nGamma “δ” 東京.\n".encode(),
    "a.md": MARKDOWN,
    "a.html": PAGE,
    "a.pdf": pdf(3, b"BT /F 9 Tf 10 10 Td (Alpha beta) Tj T* (gam-) Tj T* (ma) Tj ET", 0),
    "a.docx": word_file(),
    "a.xlsx": office_file("xlsx"),
    "a.pptx": office_file("pptx"),
    "a.odt": packed({"META-INF/manifest.xml": "<m/>", "content.xml": OPEN_TEXT}),
    "a.epub": packed({"META-INF/container.xml": CONTAINER, "b.opf": PACKAGE, "c.html": PAGE}),
    "a.rtf": rb"{\rtf1\ansi Alpha {\b beta}\par{\footnote \pard gamma} \u8364?\trowd\cellx9 a\cell\row}",
    "a.eml": MAIL,
    "a.srt": b"1\n00:00:01,000 --> 00:00:02,000\n<i>Alpha</i>\n\n2\n00:00:03,000 --> 00:00:04,000\nbeta\n",
    "a.csv": b'id,title,text\n1,A,"Alpha, ""beta"""\n2,B,"two\nlines"\n',
    "a.jsonl": b'{"text": "Alpha", "title": "A", "n": [1, 2.5e3]}\n\n{"text": "\\ud83d\\ude00 beta"}\n',
    "a.ipynb": NOTEBOOK,
    "a.py": b"def f(x):\n    return x  # alpha\n",
    "a.zip": packed({"b.md": MARKDOWN}),
}
BEIR = {
    "corpus.jsonl": b'{"_id": "d1", "title": "A", "text": "Alpha"}\n{"_id": "d2", "text": "Beta"}\n',
    "queries.jsonl": b'{"_id": "q1", "text": "Which?"}\n',
    "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1\n",
}
