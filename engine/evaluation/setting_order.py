"""How settings of a search rank on other, labelled corpora: what is known without a question about one's own.

``python -m benchmarks.drafts … --order data/setting_order.csv`` measures it with the default encoder.
"""

import csv
from dataclasses import dataclass
from functools import cache

from ..installed import bundled
from ..settings import Configuration

ORDER_FILE = bundled("setting_order.csv")
KEYS = ("splitter", "chunk_tokens", "retriever", "pooling")


@dataclass(frozen=True)
class Elsewhere:
    """The mean MRR of a setting minus that of the default, over a number of other corpora."""

    gain: float
    n_corpora: int


@cache
def setting_order() -> dict[tuple[str, ...], Elsewhere]:
    """Return the measured settings by the texts of their `KEYS`."""
    with ORDER_FILE.open(encoding="utf-8", newline="") as file:
        return {
            tuple(row[key] for key in KEYS): Elsewhere(float(row["gain"]), int(row["n_corpora"]))
            for row in csv.DictReader(file)
        }


def elsewhere(configuration: Configuration) -> Elsewhere | None:
    """Return how a setting ranks on other corpora; None where it was not measured, or with another model."""
    default = Configuration()
    if any(getattr(configuration, key) != getattr(default, key) for key in ("model", "overlap", "context")):
        return None
    return setting_order().get(tuple(str(getattr(configuration, key)) for key in KEYS))
