"""Data sets of random numbers in the files in which public scripts expect to find theirs, where there is no network."""

import gzip
import json
import os
import pickle
import struct
from pathlib import Path

import numpy as np


def mnist(checkouts):
    """MNIST as its four files, for JAX's examples, and as Keras keeps it."""
    folder = Path("/tmp/jax_example_data")
    folder.mkdir(exist_ok=True)
    random, arrays = np.random.default_rng(0), {}
    for name, key, count in (("train", "train", 512), ("t10k", "test", 256)):
        images, labels = random.integers(0, 256, (count, 28, 28), np.uint8), random.integers(0, 10, count, np.uint8)
        with gzip.open(folder / f"{name}-images-idx3-ubyte.gz", "wb") as file:
            file.write(struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes())
        with gzip.open(folder / f"{name}-labels-idx1-ubyte.gz", "wb") as file:
            file.write(struct.pack(">II", 2049, count) + labels.tobytes())
        arrays |= {f"x_{key}": images, f"y_{key}": labels}
    keras = Path(os.environ.get("KERAS_HOME", Path.home() / ".keras")) / "datasets"
    keras.mkdir(parents=True, exist_ok=True)
    if not (keras / "mnist.npz").exists():
        np.savez(keras / "mnist.npz", **arrays)


def characters(checkouts):
    """Token files as nanoGPT and its descendants prepare them."""
    for name in ("nanoGPT-jax/data/shakespeare_char", "nanoGPT-jax/data/shakespeare", "midGPT/data/shakespeare_char"):
        folder = Path(checkouts) / name
        folder.mkdir(parents=True, exist_ok=True)
        for part in ("train", "val"):
            np.random.default_rng(0).integers(0, 65, 20_000).astype(np.uint16).tofile(folder / f"{part}.bin")
        (folder / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": 65}))


def text(checkouts):
    """A file of text."""
    (Path(checkouts) / "text.txt").write_text("to be or not to be, that is the question\n" * 2000)


WORDS = "to be or not to be that is the question whether tis nobler in the mind"


def levanter(checkouts):
    """A configuration of Levanter for a Llama of two layers, a text, and a tokenizer of whole words."""
    folder = Path(checkouts).absolute() / "levanter-tiny"
    folder.mkdir(exist_ok=True)
    (folder / "text.jsonl").write_text(f"{json.dumps({'text': f'{WORDS} ' * 3})}\n" * 2000)
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(("<unk>", "<eos>", *WORDS.split())))}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    added = [{"id": number, "content": word, **special} for number, word in enumerate(("<unk>", "<eos>"))]
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"}
    rest = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    whole = {"version": "1.0", "added_tokens": added, "pre_tokenizer": {"type": "Whitespace"}, "model": model, **rest}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "eos_token": "<eos>"}
    for name, content in (("tokenizer", whole), ("tokenizer_config", settings)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    config = {
        "data": {
            **{f"{split}_urls": [str(folder / "text.jsonl")] for split in ("train", "validation")},
            "cache_dir": str(folder / "cache"),
            "tokenizer": str(folder),
        },
        "model": {"type": "llama", "tokenizer": str(folder), "seq_len": 64, "hidden_dim": 64, "intermediate_dim": 128}
        | {"num_heads": 4, "num_kv_heads": 2, "num_layers": 2},
        "trainer": {
            "mp": "f32",
            "num_train_steps": 10,
            "train_batch_size": 8,
            "max_eval_batches": 1,
            "require_accelerator": False,
            "tensor_parallel_axes": ["mlp", "heads"],
            "model_axis_size": 2,
            "tracker": {"type": "noop"},
            "ray": {"auto_start_cluster": False},
            "checkpointer": {"base_path": str(folder / "checkpoints"), "save_interval": "1h"},
        },
    }
    (folder / "tiny.yaml").write_text(json.dumps(config))
