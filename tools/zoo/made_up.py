"""Data sets of random numbers in the files in which public scripts expect to find theirs, where there is no network."""

import gzip
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
