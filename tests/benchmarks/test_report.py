import json
import subprocess
import sys
from datetime import date

import pytest
from benchmarks.kills import NEW, OLD, STATES
from benchmarks.operations import ENDS, WELL

from benchmarks.command import processor
from benchmarks.follow_ups import AS_TYPED, HALVES, WITH_TOPIC
from benchmarks.journey import QUOTED
from benchmarks.memory import READY
from benchmarks.report import DOCS, NAMES, ReportError, page, section, store
from engine.evaluation.answers import ANSWER_METRICS

ABOUT = {
    "command": "python -m benchmarks.x",
    "date": "2026-01-02",
    "processor": "A Processor",
    "workload": "some work",
    "peers": {},
    "limit": {},
}
ENCODED = {"startup_s": 0.5, "resident_mb": 100.0, "peak_mb": 200.0, "max_difference": 2e-7}
DECODED = {"new_tokens_per_s": 100.0, "prompt_tokens_per_s": 1000.0, "first_token_s": 0.4, "load_s": 0.9}
DECODED |= {"peak_mb": 400.0, "divergence": 4e-7, "same_tokens": True}
CUT = {"s": 1.8, "chunks": 9000, "peak_mb": 100.0, "documents_s": 6.6, "documents_peak_mb": 284.0}
TRAINED = {"step_ms": 60.0, "lowest_step_ms": 55.0, "peak_mb": 1.0, "max_loss_difference": 1e-6}
TUNED = {"seconds": 0.48, "loss": 1.5, "peak_mb": 900.0}
METRIC = {"before": 0.4, "after": 0.43, "difference": 0.03, "interval": [0.01, 0.05]}
SWEEP_PEER = "sentence-transformers + LangChain + bm25s, cell by cell"
RATIOS = {"ratio": 20.9, "warm_ratio": 195.0, "cpu_ratio": 21.0, "warm_cpu_ratio": 200.0}
RULE = {"rule": "relevance 10", "chunk_tokens": 64, "pooling": "mean", "answered": 0.9, "refused": 0.8}
SERVED = {"requests_per_s": 400.0, "p50_ms": 70.0, "p99_ms": 110.0, "cpu_ms": 2.5}
ANSWERING = {"workloads": {"short": SERVED, "mixed": SERVED}, "max_difference": 5e-3}
KIND = {"n_chunks": 9000, "bytes": 104.0, "build_ms": 0.4, "effort": 32, "recall": 0.96, "search_ms": 0.3}
RERANKED = {"mrr": 0.8, "difference": -0.01, "low": -0.02, "high": 0.0}
RERANKING = {"n_questions": 9, "rows": {"alone": RERANKED}, "cost": "It takes 6.0 s."}
SEARCHED = {"index": "IVF (nprobe 16)", "build_s": 9.0, "build_peak_mb": 2000.0, "resident_mb": 450.0}
SEARCHED |= {"mapped_mb": 30.0, "sample_recall": 0.977, "recall": 0.985}
TOOK = {"median_ms": 0.4, "p99_ms": 0.9, "processor_p99_ms": 0.8}
SEARCHED |= TOOK | {"filtered": {"10%": TOOK | {"recall": 0.99}}}
# What each benchmark prints, as small as can be.
ANSWERED = {
    **{name: {"estimate": 0.64, "low": 0.52, "high": 0.75} for name in ANSWER_METRICS},
    "until_quotes_s": 0.14,
    "seconds": 0.5,
}
RESULTS = {
    "encode": {
        "ours": ENCODED | {"tokens_per_s": {"32 tokens": 17200.0, "mixed": 9.0}, "first_start_s": 9.0},
        "peers": {
            "onnx": ENCODED
            | {
                "tokens_per_s": {"32 tokens": 100.0, "mixed": 3.0},
                "ratios": {"32 tokens": 3.55, "mixed": 3.0},
            }
        },
        "limit": {"gemm_gflops": 99.0, "blas_kernel": "Zen", "fraction": {"mixed": 0.88}},
    },
    "families": {
        "ours": {
            "families": {
                "qwen": {"note": "4 layers", "ratio": 1.5, "max_difference": 2e-7}
                | {"tokens_per_s": {"glassbox": 1500.0, "onnxruntime float32": 1000.0}}
            },
            "reranker": {"tokens": 12800, "seconds": 1.1, "encode_seconds": 1.0, "ratio": 1.1},
        }
    },
    "decode": {
        "ours": DECODED,
        "peers": {"llama.cpp": DECODED | {"ratio": 2.8, "prompt_ratio": 3.8}},
        "limit": {"read_gb_per_s": 63.0, "mb_per_token": 109.0, "fraction": 0.4}
        | {"gemm_gflops": 330.0, "prompt_gflop": 115.0, "prompt_fraction": 0.7},
    },
    "chunk": {
        "ours": CUT | {"redraw_ms": {"200 pages": {"fixed": 40.0}}},
        "peers": {"langchain": CUT | {"ratio": 5.04, "documents_ratio": 3.1}},
        "limit": {"tokenizers_alone_s": 1.0, "ratio": 0.6},
    },
    "paint": {
        "ours": {"s": {"read": 7.0}, "slowest_part_ms": 140.0, "peak_mb": 301.0, "idle_mb": 130.0},
        "peers": {},
    },
    "sweep": {
        "ours": {"cold_s": 32.0, "warm_s": 3.4, "cold_cpu_s": 60.0, "warm_cpu_s": 6.0, "peak_mb": 500.0},
        "peers": {
            SWEEP_PEER: RATIOS
            | {"s": 655.0, "cpu_s": 1300.0, "peak_mb": 900.0, "largest_difference_mrr": 1e-3}
        },
        "limit": {"embedding_alone_s": 27.0, "ratio": 0.84},
    },
    "stream": {
        "ours": {"chunks_per_s": 1.0, "seconds": 2.0, "peak_mb": 3.0, "rise_after_first_tenth_mb": 21.0},
        "limit": {"vectors_mb": 154.0},
    },
    "cluster": {
        "ours": {
            "1": {"files_per_s": 0.25, "seconds": 60.0},
            "2": {"files_per_s": 0.48, "seconds": 40.0, "ratio": 1.9, "whole_ratio": 1.5},
        },
        "limit": {"ratio": 2.0, "aim": 1.7},
    },
    "train": {
        "ours": TRAINED,
        "peers": {"PyTorch eager": TRAINED | {"ratio": 1.9, "ratio_of_lowest": 2.0}},
        "limit": {"ratio": 1.2},
    },
    "tune": {
        "ours": TUNED,
        "peers": {"torch eager": TUNED | {"ratio": 1.71}},
        "reference": {
            "adapter, by question": {"dense": {"nDCG": METRIC}, "weighted hybrid": {"nDCG": METRIC}}
        },
    },
    "quality": {
        "ours": {"bm25": {"ndcg_at_10": 0.369, "recall_at_10": 0.3889}},
        "peers": {},
    },
    "late": {"ours": {"rows": [{"chunk_tokens": 128, "context": 256, "mrr": 0.708, "hits_at_5": 0.9}]}},
    "query_likelihood": {"ours": {"bundled": RERANKING}},
    "distilled_reranker": {"ours": {"bundled": RERANKING}},
    "answers": {
        "ours": {"a half": ANSWERED},
        "peers": {"text from whole passages": {"a half": ANSWERED}},
    },
    "follow_ups": {
        "ours": {"told_apart": {"tune": 0.9375, "report": 0.8125}},
        "peers": {
            way: {half: dict.fromkeys(("follow-ups", "complete questions"), ANSWERED) for half in HALVES}
            for way in (AS_TYPED, WITH_TOPIC)
        },
    },
    "quantized_types": {
        "ours": {
            "types": {"Q4_K": {"bits": 4.625, "gb_per_s": 11.0, "share": 0.61, "loading_gb_per_s": 0.57}}
        },
        "limit": {"read_gb_per_s": 18.0},
    },
    "threshold": {
        "ours": {"rows": [RULE], "related": [RULE | {"rule": "relevance 10, 10% related"}]},
        "peers": {"fixed cosine": {"rows": [RULE | {"rule": "cosine 0.3"}]}},
    },
    "serve": {
        "ours": ANSWERING,
        "peers": {"sentence-transformers": ANSWERING | {"ratios": {"short": 2.5, "mixed": 2.1}}},
    },
    "scale": {
        "ours": {
            "embedding": {"float32": 0.19},
            "kinds": [{"ivf-pq": KIND}],
            "words": {"bytes": 130.0, "build_ms": 0.02, "search_ms": 0.2},
            "folder": {"text_bytes": 700.0, "memory_bytes": 900.0, "open_ms": 0.01, "cache_bytes": 2000.0},
        }
    },
    "journey": {
        "ours": {
            screen: {QUOTED: {"clicks": 1, "seconds": 6.25}, "link": {"clicks": 7, "seconds": 31.04}}
            for screen in ("1440 px", "390 px")
        },
        "limit": {QUOTED: {"clicks": 1, "seconds": 8.0}},
    },
    "search": {
        "chunks": 1_000_000,
        "chosen": "as 1,000,000 chunks are many",
        "ours": SEARCHED | {"kind": "ivf-sq8"},
        "peers": {
            "glassbox, IVF-PQ": SEARCHED | {"kind": "ivf-pq", "resident_mb": 700.0},
            "hnswlib": {"kind": "hnswlib", "ended": "ended by SIGSEGV"},
        },
        "words": {"build_s": 60.0, "build_peak_mb": 3000.0, "postings_mb": 300.0, "index": "IVF"}
        | {"rows": {"weighted": SEARCHED | {"label": "hybrid"}}},
        "limit": {"recall": 0.95, "ms": 5, "words_ms": 100, "resident_mb": 600},
    },
    "memory": {"ours": {READY: 389.4}, "limit": {READY: 450}},
    "operations": {
        "ours": {
            "suites": {"files": {**dict.fromkeys(ENDS, 0), WELL: 884, "seconds": 60.0}},
            "kills": {"experiment": {**dict.fromkeys(STATES, 0), OLD: 20, NEW: 48}},
            "limits": [["cells of a grid", "10,000", "50"]],
        }
    },
}
RENDERED = {
    "serve": "| sentence-transformers | 400 | 2.50 | 70 | 110 | 2.50 | 1.00 |",
    "scale": "| IVF-PQ | 9,000 | 104 | 0.40 | 32 | 0.960 | 0.30 |",
    "answers": "| right (of answerable) | 0.64 [0.52, 0.75] |",
    "journey": "| first answer, quoted | 1 · 6.2 s | 1 · 6.2 s | 1 · 8 s |",
    "memory": "| ready to be asked | 389 | 450 |",
    "operations": "| experiment | 68 | 20 | 48 | 0 | 0 | 0 | 0 |",
    "follow_ups": "| as typed |" + " 0.64 [0.52, 0.75] |" * 4,
    "encode": "| onnx | 100 | 3.55 | 3 | 3.00 |",
    "families": "| qwen (4 layers) | 1,500 | 1,000 | 1.50 | 2.0e-07 |",
    "decode": "| llama.cpp | 100.0 | 2.80 | 1,000 | 3.80 | 0.40 | 0.90 | 400 | 4e-07 | True |",
    "chunk": "| langchain | 1.80 | 5.04 | 9,000 | 100 | 6.60 | 3.10 | 284 |",
    "paint": "the slowest part of a document took 140 ms to paint",
    "sweep": "| glassbox, warm | 3.4 | 195.0 | 6.0 | 200.0 | 500 |",
    "cluster": "| 2 workers | 0.48 | 1.90 | 40 | 1.50 |",
    "stream": "| rise after the first tenth, MB | 21.0 |",
    "search": "| IVF-PQ: resident MB | 700 | 600 | no |",
    "train": "| glassbox | 60.0 | 55.0 | 1 | 1.0e-06 |  |  |",
    "tune": "| adapter, by question, dense | nDCG | 0.4000 | 0.4300 | +0.0300 | +0.0100 to +0.0500 |",
    "quality": "| bm25 | 0.3690 | 0.3889 |  |",
    "late": "| late, 256 | 128 | 0.708 | 0.900 |",
    "query_likelihood": "| alone | 0.800 | -0.010 | -0.020 to +0.000 |",
    "distilled_reranker": "| bundled, 9 questions | MRR | minus weighted | 95 % interval |",
    "quantized_types": "| Q4_K | 4.62 | 11.0 | 61% | 19.0 | 0.57 |",
    "threshold": "| mean | 64 | 90% / 80% | 90% / 80% | 90% / 80% |",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_rendered_with_its_table_and_its_machine(name):
    text = section(name, [ABOUT | RESULTS[name]])
    assert RENDERED[name] in text.splitlines()
    assert "`python -m benchmarks.x` on A Processor, 2026-01-02: some work." in text
    title, summary = text.split("\n\n")[:2]
    assert title.startswith("## ")
    assert ":" not in title
    assert "``" not in title
    assert summary.endswith(".")
    assert "\n" not in summary


@pytest.mark.parametrize(("name", "figure"), [("decode", "load_s"), ("late", "mrr"), ("chunk", "processor")])
def test_a_missing_figure_is_an_error(name, figure):
    result = json.loads(json.dumps(ABOUT | RESULTS[name]))
    for figures in (result, result["ours"], *result["ours"].get("rows", ())):
        figures.pop(figure, None)
    with pytest.raises(ReportError, match=f"{name}: the stored result has no figure '{figure}'"):
        section(name, [result])


def test_figures_are_stored_and_rendered_in_the_order_of_the_page(tmp_path):
    for name in ("late", "decode"):
        result = {key: value for key, value in ABOUT.items() if key not in ("command", "date")}
        (tmp_path / f"{name}.json").write_text(json.dumps(result | RESULTS[name]))
        store(name, tmp_path / "docs", tmp_path)
    (stored,) = json.loads((tmp_path / "docs" / "benchmarks" / "late.json").read_text())
    assert stored["command"] == "python -m benchmarks.late"
    assert stored["date"] == date.today().isoformat()
    text = page(tmp_path / "docs")
    assert text.index("## How fast text is generated") < text.index("## What late chunking does to a search")


def test_the_newest_result_of_every_processor_is_kept(tmp_path):
    for processor_name, seconds in (("Zen", 2.0), ("Xeon", 3.0), ("Zen", 4.0)):
        result = RESULTS["stream"] | {"processor": processor_name, "workload": f"{seconds} s"}
        (tmp_path / "stream.json").write_text(json.dumps(result))
        store("stream", tmp_path / "docs", tmp_path)
    text = page(tmp_path / "docs")
    assert text.index("on Xeon") < text.index("3.0 s.") < text.index("on Zen") < text.index("4.0 s.")
    assert "2.0 s" not in text
    assert text.count("## ") == 1


def test_an_unknown_benchmark_is_refused_in_one_line(tmp_path):
    command = [sys.executable, "-m", "benchmarks.report", "speed", "--docs", str(tmp_path)]
    done = subprocess.run(command, cwd=DOCS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("there is no benchmark 'speed': choose from answers, follow_ups, encode")
    assert len(done.stderr.splitlines()) == 1


def test_the_page_is_what_the_stored_figures_give():
    assert (DOCS / "benchmarks.md").read_text("utf-8") == page(DOCS)


def test_the_processor_has_a_name():
    assert processor()
