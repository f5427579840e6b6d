"""Settings that the cards of well-known embedding models state and their files do not."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..installed import bundled


@dataclass(frozen=True)
class ModelCard:
    """The settings that a model's card states."""

    name: str  # regular expression of the model's name, without its owner
    # each model_type and hidden_size of its config.json: a folder of the same name with others is no copy
    sizes: Sequence[list[Any]]
    pooling: str  # this and the next used where the folder has no modules.json
    normalize: bool
    source: str  # the card
    prompts: Mapping[str, str] = field(default_factory=dict)  # used where its files state none


MODEL_CARDS = [ModelCard(**card) for card in json.loads(bundled("model_cards.json").read_text("utf-8"))]


def model_card(folder: Path, config: Mapping[str, Any]) -> ModelCard | None:
    """Return the card of the model in a folder, known by the folder's name and its config.json, or None.

    Names are those of a clone (``e5-base-v2``), of the engine's cache (``intfloat--e5-base-v2``) and of the
    Hub's (``models--intfloat--e5-base-v2/snapshots/…``).
    """
    place = folder.resolve()
    place = place.parent.parent if place.parent.name == "snapshots" else place
    name = place.name.rpartition("--")[2]
    size = [config.get("model_type"), config.get("hidden_size", config.get("n_embd"))]
    return next((card for card in MODEL_CARDS if size in card.sizes and re.fullmatch(card.name, name)), None)
