"""Makes the corpus: the texts of every stage of small programs, for some targets, with the JAX that runs this script.

    python tests/corpus/make.py FOLDER [--targets cpu,tpu:v5e:2x4,gpu] [--programs dense,…] [--samples] [--passes]

Texts are named `PROGRAM.TARGET.STAGE.hlo` or `….mlir`, with `--passes` also `PROGRAM.TARGET.passes/…`, one after each
pass of the compiler, with `--samples 5` also of every fifth function of the samples. TPU and GPU targets are compiled
for, with nothing attached, where their plugins are installed.
The last line printed is a JSON object: the texts written and, by program and target, why others were not.

The tests make a small corpus of what they find installed. A larger one, of any JAX from 0.4.35 on, takes minutes:

    PYTHON tests/corpus/make.py FOLDER --targets cpu,tpu:v5p:2x2x2,tpu:v4:2x2x1,tpu:v6e:2x4,gpu --samples --passes
    SHARDSCOPE_CORPUS=FOLDER SHARDSCOPE_CORPUS_PYTHON=PYTHON python -m pytest tests/parsers -k corpus -s

The second line compares what we read in that folder with what the C++ parsers of that Python's jaxlib do.
"""

import argparse
import json
import os
import runpy
from itertools import islice
from pathlib import Path

os.environ.update(
    TPU_SKIP_MDS_QUERY="1",
    ALLOW_MULTIPLE_LIBTPU_LOAD="1",
    # What LLVM does for machine code changes no text.
    XLA_FLAGS="--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true",
)

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from programs import PROGRAMS, mesh_of

try:
    from shardscope.inspector.capture.worker.provenance import propagate
except ImportError:  # a Python in which shardscope is not installed, or a JAX without these passes
    propagate = None

GPU = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: 233472
  threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 84942979072
  shared_memory_per_block_optin: 232448 cuda_compute_capability { major: 9 }
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
}
platform_name: "CUDA"
device_description_str: "sm_90"
"""
"""An H100, as far as the compiler asks (the fields of XLA's GpuTargetConfigProto; the figures are NVIDIA's)."""

FORMS = {
    "stablehlo": {"enable_debug_info": True},
    "bare": {},
    "local": {"enable_debug_info": True, "use_local_scope": True},
    "generic": {"enable_debug_info": True, "print_generic_op_form": True},
}
"""How MLIR is asked to print a module: with locations or without, without aliases, in generic form."""

SAMPLES = Path(__file__).parent.parent.parent / "samples"


def devices_of(target):
    """Eight devices of a target: `cpu`, `gpu`, or `tpu:` and the name of a topology."""
    if target == "cpu":
        return jax.devices()[:8]
    if target == "gpu":
        return topologies.get_topology_desc(platform="cuda", target_config=GPU, topology="1x1x8").devices
    return topologies.get_topology_desc(platform="tpu", topology_name=target.removeprefix("tpu:")).devices[:8]


def write_stages(jitted, arguments, target, stem, passes):
    """Lower and compile a program; write what each stage prints."""
    platform = {"gpu": "cuda"}.get(target, target.partition(":")[0])
    lowered = jitted.trace(*arguments).lower(lowering_platforms=(platform,))
    module = lowered.compiler_ir("stablehlo").operation
    for form, options in FORMS.items():
        write(stem, f"{form}.mlir", module.get_asm(**options))
    if propagate:
        text = module.get_asm(enable_debug_info=True).encode()
        write(stem, "propagated.mlir", propagate(text, "origins steps").decode())
    write(stem, "before.hlo", lowered.as_text(dialect="hlo"))
    options = {"xla_gpu_autotune_level": 0} if target == "gpu" else {}
    if passes:
        options |= {"xla_dump_to": f"{stem}.passes", "xla_dump_hlo_pass_re": ".*"}
    compiled = lowered.compile(compiler_options=options)
    write(stem, "after.hlo", compiled.as_text())


def write(stem, stage, text):
    Path(f"{stem}.{stage}").write_text(text)


def own_program(name, target):
    """One of `programs.py`, on a mesh of the target's devices."""
    program, arguments = PROGRAMS[name](mesh_of(np.array(devices_of(target)).reshape(4, 2), ("x", "y")))
    return jax.jit(program), arguments


def sample_programs():
    """The functions of the samples with their inputs, by name."""
    catalogue = runpy.run_path(str(SAMPLES / "catalogue.py"))
    for sample in catalogue["samples"]():
        module = runpy.run_path(str(sample.path), run_name=sample.name)
        for function in sample.functions:
            inputs = module[f"{function}_inputs"]
            meshes = [value for value in module.values() if isinstance(value, Mesh)]
            arguments = inputs() if callable(inputs) else inputs
            yield f"{sample.name}-{function}", module[function], arguments, meshes[0]


def for_target(function, arguments, mesh, target):
    """A program that is written for a mesh of fake CPU devices, moved to the devices of a target."""
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    if target == "cpu":
        return jitted, arguments
    platform = {"gpu": "cuda"}.get(target, target.partition(":")[0])
    exported = jax.export.export(jitted, platforms=[platform])(*arguments)
    devices = np.array(devices_of(target)[: mesh.size]).reshape(mesh.devices.shape)
    moved = mesh_of(devices, mesh.axis_names)
    leaves = [
        jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding or NamedSharding(moved, P()))
        for aval, sharding in zip(exported.in_avals, exported.in_shardings_jax(moved), strict=True)
    ]
    arguments, _ = jax.tree.unflatten(exported.in_tree, leaves)
    return jax.jit(exported.call), arguments


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--targets", default="cpu")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--samples", type=int, nargs="?", const=1, metavar="EVERY")
    parser.add_argument("--passes", action="store_true")
    options = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    options.folder.mkdir(parents=True, exist_ok=True)

    failures = {}
    for name in filter(None, options.programs.split(",")):
        jax.config.update("jax_use_shardy_partitioner", False)
        function, arguments = own_program(name, "cpu")
        module = function.lower(*arguments).compiler_ir("stablehlo").operation
        write(options.folder / f"{name}.cpu", "gspmd.mlir", module.get_asm(enable_debug_info=True))
        jax.config.update("jax_use_shardy_partitioner", True)
    for target in options.targets.split(","):
        for name in filter(None, options.programs.split(",")):
            stem = options.folder / f"{name}.{target.replace(':', '-')}"
            try:
                write_stages(*own_program(name, target), target, stem, options.passes)
            except Exception as error:
                failures[stem.name] = f"{type(error).__name__}: {error}"[:300]
        for name, *sample in islice(sample_programs(), 0, None, options.samples) if options.samples else ():
            stem = options.folder / f"{name}.{target.replace(':', '-')}"
            try:
                write_stages(*for_target(*sample, target), target, stem, passes=False)
            except Exception as error:
                failures[stem.name] = f"{type(error).__name__}: {error}"[:300]
    texts = sorted(str(path) for path in options.folder.rglob("*") if path.suffix in (".hlo", ".mlir", ".txt"))
    print(json.dumps({"texts": texts, "failures": failures}))


if __name__ == "__main__":
    main()
