"""A model folder made by hand, small enough to calculate with: every word's vector is one of the unit vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers.models import WordLevel

WORDS = ["[UNK]", "[CLS]", "[SEP]", "passage", "query", ":", "red", "green", "blue"]
"""The place of a word is its token id, and the place of the 1 in its vector."""


def make_folder(folder: Path, pooling: str = "mean", dimension: int = 384, **card: Any) -> Path:
    """Tokens -> `last_hidden_state` [batch, tokens, dimension]; inputs as most exported models have them."""
    folder.mkdir(parents=True)
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=32)
    tokenizer.save(str(folder / "tokenizer.json"))
    table = numpy_helper.from_array(np.eye(len(WORDS), dimension, dtype=np.float32), "table")
    shape = ["batch", "tokens"]
    names = ("input_ids", "attention_mask", "token_type_ids")
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in names],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, dimension])],
        [table],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), folder / "model.onnx"
    )
    values = {"name": "tiny", "dimension": dimension, "max_tokens": 16, "pooling": pooling, **card}
    (folder / "palace-model.json").write_text(json.dumps(values))
    return folder
