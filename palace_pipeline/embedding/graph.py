"""The ONNX graph of multilingual-e5-small, written from the Q4 weights without torch.

Weights: the word table stays 4 bits as in the source; the linear layers become int8, one scale per output feature
(the step from Q4 costs nothing that matters: nearly all of the error comes from the int8 activations). Activations are
quantized at run time with one scale per tensor. A tensor holds one text, since `embedding.model` runs texts one by
one: so a text's vector does not depend on what else is embedded. On two cores that is also about twice as fast as
padded batches of eight, whose activations no longer fit the caches.

The nodes are written quantized instead of being passed through onnxruntime's quantizer: 1.4 s and 0.4 GB at the peak
instead of 4.6 s and 0.9 GB, and the bytes do not depend on the quantizer's version.
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

    def quantized(self, source: str) -> tuple[str, str, str]:
        """Names of the u8 tensor, its scale and its zero point."""
        outputs = [f"{source}.u8", f"{source}.scale", f"{source}.zero"]
        self.nodes.append(helper.make_node("DynamicQuantizeLinear", [source], outputs))
        return outputs[0], outputs[1], outputs[2]

    def int8(self, name: str, weights: NDArray[np.float32]) -> tuple[str, str, str]:
        """Constants of a weight `[in, out]`: int8 values, a scale per output feature, zero points (all zero)."""
        scales = np.abs(weights).max(axis=0) / np.float32(_LARGEST)
        values = np.clip(np.rint(weights / scales), -_LARGEST, _LARGEST).astype(np.int8)
        return (
            self.constant(f"{name}.i8", values),
            self.constant(f"{name}.scales", scales.astype(np.float32)),
            self.constant(f"{name}.zeros", np.zeros(weights.shape[1], np.int8)),
        )


_MS_OPERATORS = {"GatherBlockQuantized", "QAttention", "DynamicQuantizeMatMul", "SkipLayerNormalization", "BiasGelu"}


def build_model(file: E5File) -> onnx.ModelProto:
    """`input_ids`, `attention_mask`: int64 [batch, tokens] -> `sentence_embedding`: f32 [batch, hidden], L2 norm 1."""
    graph = _Graph()
    state = _embedding_layer(graph, file)
    graph.node("Cast", ["attention_mask"], "mask", to=TensorProto.INT32)
    for layer in range(file.layers):
        state = _layer(graph, file, f"l{layer}.", state)
    _mean_and_norm(graph, state)
    shape = ["batch", "tokens"]
    proto = helper.make_graph(
        graph.nodes,
        "multilingual-e5-small",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in ("input_ids", "attention_mask")],
        [helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", file.hidden])],
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
    for name, value in (("zero", 0), ("one", 1), ("two", 2)):
        graph.constant(name, np.array([value], np.int64))
    graph.node("Shape", ["input_ids"], "tokens", start=1, end=2)
    graph.node("Slice", ["emb.positions", "zero", "tokens", "one"], "emb.places")
    graph.node("Add", ["emb.words", "emb.places"], "emb.sum")
    norm = [graph.constant(name, file.floats(name)) for name in ("emb.ln.w", "emb.ln.b")]
    return graph.node("LayerNormalization", ["emb.sum", *norm], "emb.out", axis=-1, epsilon=_EPSILON)


def _layer(graph: _Graph, file: E5File, prefix: str, state: str) -> str:
    def floats(name: str) -> str:
        return graph.constant(prefix + name, file.floats(prefix + name))

    def linear(name: str, source: str, rows: int) -> str:
        weights = graph.int8(prefix + name, file.weights(f"{prefix}{name}.w", rows).T)
        return graph.node("DynamicQuantizeMatMul", [source, *weights], f"{prefix}{name}.out")

    def add_and_norm(left: str, right: str, name: str, bias: str) -> str:
        inputs = [left, right, floats(f"{name}.w"), floats(f"{name}.b"), floats(bias)]
        return graph.node("SkipLayerNormalization", inputs, f"{prefix}{name}.out", epsilon=_EPSILON)

    joined = np.concatenate([file.weights(f"{prefix}{name}.w", file.hidden).T for name in "qkv"], axis=1)
    bias = graph.constant(f"{prefix}qkv.b", np.concatenate([file.floats(f"{prefix}{name}.b") for name in "qkv"]))
    values, scales, zeros = graph.int8(f"{prefix}qkv", joined)
    source, scale, zero = graph.quantized(state)
    attention = graph.node(
        "QAttention",
        [source, values, bias, scale, scales, "mask", zero, zeros],
        f"{prefix}attention",
        num_heads=file.heads,
    )
    attended = add_and_norm(linear("ao", attention, file.hidden), state, "aln", "ao.b")
    inner = graph.node("BiasGelu", [linear("fi", attended, file.feed_forward), floats("fi.b")], f"{prefix}gelu")
    return add_and_norm(linear("fo", inner, file.hidden), attended, "oln", "fo.b")


def _mean_and_norm(graph: _Graph, state: str) -> None:
    graph.node("Cast", ["attention_mask"], "mask.f32", to=TensorProto.FLOAT)
    graph.node("Unsqueeze", ["mask.f32", "two"], "mask.column")
    graph.node("Mul", [state, "mask.column"], "masked")
    # The sum stands for the mean: the norm divides both to the same vector.
    graph.node("ReduceSum", ["masked", "one"], "sum", keepdims=0)
    graph.node("LpNormalization", ["sum"], "sentence_embedding", axis=-1, p=2)
