"""The ONNX graph of multilingual-e5-small, written from the Q4 weights without torch.

Weights: the word table stays 4 bits as in the source; the linear layers become int8, one scale per output feature
(the step from Q4 costs nothing that matters: nearly all of the error comes from the int8 activations). Activations are
quantized at run time with one scale per tensor. A tensor holds one text, since `embedding.model` runs texts one by
one: so a text's vector does not depend on what else is embedded, no padding is computed and no mask is needed. That is
also about twice as fast as padded batches of eight, whose activations no longer fit the caches.

The nodes are written quantized instead of being passed through onnxruntime's quantizer: 1.4 s and 0.4 GB at the peak
instead of 4.6 s and 0.9 GB, and the bytes do not depend on the quantizer's version. Plain `LayerNormalization` and
`Gelu` are vectorized in onnxruntime 1.32 where the fused `SkipLayerNormalization` and `BiasGelu` are not: a quarter of
the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from palace_pipeline.embedding.source import E5File

OPSET, MS_OPSET, IR_VERSION = 21, 1, 10
"""Opset 21 is the first with 4-bit tensors; IR 10 belongs to it and is read by onnxruntime 1.18 and later."""

_MS = "com.microsoft"
_LARGEST = 63
"""Largest int8 weight. Processors without VNNI add two u8 x i8 products in 16 bits: 2 * 255 * 63 still fits, so that
every processor gives the same sums. Going up to 127 would bring .0004 of cosine."""

_LOUD = {0: 318, 1: 1462, 2: 354, 4: 778, 5: 658, 6: 1152, 7: 413}
"""Layer -> the one unit of its feed-forward part whose activation is 2 to 15 times the next largest (67 against 5.4 in
layer 4), in every one of 150 texts of ten languages and code. It would set the int8 scale for all others, and was most
of the model's error: computed apart in f32, the mean cosine to the f32 model goes from .9965 to .9988."""

_EPSILON = 1e-12
"""The model's own; the operators' default is 1e-5."""


class _Graph:
    """Nodes and initializers in the making."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def nibbles(self, name: str, values: NDArray[np.uint8]) -> str:
        """A signed 4-bit tensor from values 0 to 15 that mean -8 to 7."""
        signed = values ^ 8
        packed = signed[:, 0::2] | (signed[:, 1::2] << 4)
        tensor = TensorProto(name=name, data_type=TensorProto.INT4, dims=list(values.shape), raw_data=packed.tobytes())
        self.initializers.append(tensor)
        return name

    def node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        domain = _MS if operator in _MS_OPERATORS else ""
        self.nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def split(self, source: str, outputs: list[str]) -> None:
        """The last axis in equal parts."""
        self.nodes.append(helper.make_node("Split", [source], outputs, axis=-1, num_outputs=len(outputs)))

    def linear(self, name: str, source: str, weights: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        """`source @ weights + bias` in int8; weights are `[in, out]` and get a scale per output feature."""
        scales = np.abs(weights).max(axis=0) / np.float32(_LARGEST)
        values = np.clip(np.rint(weights / scales), -_LARGEST, _LARGEST).astype(np.int8)
        inputs = [
            self.constant(f"{name}.i8", values),
            self.constant(f"{name}.scales", scales.astype(np.float32)),
            self.constant(f"{name}.zeros", np.zeros(weights.shape[1], np.int8)),
            self.constant(f"{name}.bias", bias),
        ]
        return self.node("DynamicQuantizeMatMul", [source, *inputs], f"{name}.out")


_MS_OPERATORS = {"GatherBlockQuantized", "DynamicQuantizeMatMul", "MultiHeadAttention", "Gelu"}


def build_model(file: E5File) -> onnx.ModelProto:
    """`input_ids`: int64 [texts, tokens] -> `sentence_embedding`: f32 [texts, hidden], L2 norm 1. No padding."""
    graph = _Graph()
    state = _embedding_layer(graph, file)
    for layer in range(file.layers):
        state = _layer(graph, file, layer, state)
    # The sum stands for the mean: the norm divides both to the same vector.
    graph.node("ReduceSum", [state, "one"], "sum", keepdims=0)
    graph.node("LpNormalization", ["sum"], "sentence_embedding", axis=-1, p=2)
    proto = helper.make_graph(
        graph.nodes,
        "multilingual-e5-small",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])],
        [helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["texts", file.hidden])],
        graph.initializers,
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(_MS, MS_OPSET)]
    return helper.make_model(proto, opset_imports=opsets, ir_version=IR_VERSION)


def _embedding_layer(graph: _Graph, file: E5File) -> str:
    values, scales = file.blocks("emb.word", file.vocabulary)
    table = graph.nibbles("emb.word", values)
    graph.constant("emb.word.scales", scales)
    quantization = {"gather_axis": 0, "quantize_axis": 1, "block_size": file.block}
    graph.node("GatherBlockQuantized", [table, "input_ids", "emb.word.scales"], "emb.f16", **quantization)
    graph.node("Cast", ["emb.f16"], "emb.words", to=TensorProto.FLOAT)
    # Token type 0 everywhere: its row is added to the positions once and for all.
    positions = file.floats("emb.pos").reshape(file.positions, -1) + file.floats("emb.type")[: file.hidden]
    graph.constant("emb.positions", positions[None])
    for name, value in (("zero", 0), ("one", 1)):
        graph.constant(name, np.array([value], np.int64))
    graph.node("Shape", ["input_ids"], "tokens", start=1, end=2)
    graph.node("Slice", ["emb.positions", "zero", "tokens", "one"], "emb.places")
    graph.node("Add", ["emb.words", "emb.places"], "emb.sum")
    norm = [graph.constant(name, file.floats(name)) for name in ("emb.ln.w", "emb.ln.b")]
    return graph.node("LayerNormalization", ["emb.sum", *norm], "emb.out", axis=-1, epsilon=_EPSILON)


def _layer(graph: _Graph, file: E5File, layer: int, state: str) -> str:
    prefix = f"l{layer}."

    def weights(name: str, rows: int) -> NDArray[np.float32]:
        return file.weights(f"{prefix}{name}.w", rows).T

    def floats(name: str) -> NDArray[np.float32]:
        return file.floats(prefix + name)

    def add_and_norm(left: str, right: str, name: str) -> str:
        total = graph.node("Add", [left, right], f"{prefix}{name}.sum")
        norm = [graph.constant(f"{prefix}{name}.{part}", floats(f"{name}.{part}")) for part in ("w", "b")]
        return graph.node("LayerNormalization", [total, *norm], f"{prefix}{name}.out", axis=-1, epsilon=_EPSILON)

    joined = np.concatenate([weights(name, file.hidden) for name in "qkv"], axis=1)
    bias = np.concatenate([floats(f"{name}.b") for name in "qkv"])
    heads = [f"{prefix}{name}" for name in "qkv"]
    graph.split(graph.linear(f"{prefix}qkv", state, joined, bias), heads)
    attention = graph.node("MultiHeadAttention", heads, f"{prefix}attention", num_heads=file.heads)
    attended = graph.linear(f"{prefix}ao", attention, weights("ao", file.hidden), floats("ao.b"))
    state = add_and_norm(attended, state, "aln")
    forward = _feed_forward(
        graph,
        prefix,
        state,
        inner=(weights("fi", file.feed_forward), floats("fi.b")),
        outer=(weights("fo", file.hidden), floats("fo.b")),
        loud=_LOUD.get(layer),
    )
    return add_and_norm(forward, state, "oln")


_Linear = tuple[NDArray[np.float32], NDArray[np.float32]]


def _feed_forward(graph: _Graph, prefix: str, state: str, inner: _Linear, outer: _Linear, loud: int | None) -> str:
    """`gelu(state @ inner) @ outer`, the loud unit apart."""
    quiet = [unit for unit in range(len(inner[1])) if unit != loud]
    hidden = graph.linear(f"{prefix}fi", state, inner[0][:, quiet], inner[1][quiet])
    activated = graph.node("Gelu", [hidden], f"{prefix}gelu")
    result = graph.linear(f"{prefix}fo", activated, outer[0][quiet], outer[1])
    if loud is None:
        return result
    name = f"{prefix}loud"
    pull = [state, graph.constant(f"{name}.in", inner[0][:, [loud]])]
    raised = [graph.node("MatMul", pull, f"{name}.sum"), graph.constant(f"{name}.bias", inner[1][[loud]])]
    unit = graph.node("Gelu", [graph.node("Add", raised, f"{name}.raised")], f"{name}.gelu")
    push = graph.node("MatMul", [unit, graph.constant(f"{name}.out", outer[0][[loud]])], f"{name}.push")
    return graph.node("Add", [result, push], f"{prefix}fo.all")
