"""Custom calls by the exact names of their targets: what stays on its device, and what calls the host.

Whatever is in neither may communicate. A target that ends in a type's letter is there for each type.
"""

from __future__ import annotations

_BY_LAPACK = (
    *("trsm", "getrf", "geqrf", "geqp3", "potrf", "gesdd", "gesvd", "geev", "gees", "gehrd", "gtsv"),
    *("orgqr", "ungqr", "ormqr", "unmqr", "syevd", "heevd", "sytrd", "hetrd"),
)
_BY_SOLVERS = (
    *("potrf", "getrf", "geqrf", "orgqr", "ormqr", "syevd", "sytrd", "gesvd", "gesvdj", "gesdd", "gesvdp", "syrk"),
    *("geev", "csrlsvqr"),
)
_BY_SPARSE = tuple(
    f"{layout}_{does}" for layout in ("csr", "coo") for does in ("todense", "fromdense", "matvec", "matmat")
)
_ATTENTION = ("Softmax", "SoftmaxDropout", "ScaleBiasSoftmax", "ScaleBiasSoftmaxDropout", "SoftmaxF8")

LAPACK = tuple(f"lapack_{type}{does}{form}" for does in _BY_LAPACK for type in "sdcz" for form in ("", "_ffi"))
FFTS = ("ducc_fft", "dynamic_ducc_fft")

OF_CPUS = frozenset({"TopK", *LAPACK, *FFTS})
"""Calls of XLA's CPU backend for what other backends compute in another way, which is partitioned in another way."""

LOCAL = frozenset(
    {
        # XLA, xla/service/spmd and xla/hlo: annotations that the partitioner takes out, or that only name a place.
        *("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "InspectSharding", "LayoutConstraint"),
        *("annotate_device_placement", "MoveToHost", "MoveToDevice", "PinToDevice", "PinToDeviceSram"),
        *("xla.sdy.FuncResultSharding", "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"),
        *("xla.sdy.PropagationBarrier", "xla.sdy.ShardingGroup"),
        # XLA, xla/hlo/transforms and xla/service: shapes, 64-bit types, buffers of Refs.
        *("PadToStatic", "SliceToDynamic", "SetBound", "AllocateBuffer", "CreateBuffer", "Pin", "Unpin"),
        *("X64Combine", "X64SplitLow", "X64SplitHigh", "AssumeGatherIndicesInBound"),
        # XLA, xla/hlo/builder/lib and its expanders.
        *("TopK", "ApproxTopK", "PartialReduce", "__gpu$TopK", "Cholesky", "LuDecomposition", "Eigh", "Qr"),
        *("ProductOfElementaryHouseholderReflectors", "mhlo.topk", "mhlo.erf", "chlo.erf"),
        # libtpu, in programs that it has compiled.
        *("GatherScatterIndicesBitpacked", "ConcatBitcast", "RiscBitcast"),
        # The same, beside a collective that is an instruction of its own: in the call that a SparseCore runs, or in the
        # fusion that begins or ends it, as an operand.
        *("PrepareAsyncCallStart", "PrepareAsyncCallDone", "AsyncCollectiveStart", "AsyncCollectiveDone"),
        # XLA's CPU backend, xla/service/cpu.
        *("__onednn$matmul", "__onednn$matmul_reorder", "__onednn$convolution", "__onednn$layernorm"),
        "__onednn$softmax",
        # XLA's GPU backend, xla/service/gpu/cublas_cudnn.cc and its rewriters.
        *("__cublas$gemm", "__cublas$triangularSolve", "__cublas$lt$matmul", "__cublas$lt$matmul$f8"),
        *("__cublas$lt$matmul$mx", "__cublas$lt$groupedMatmul", "__cusolver$cholesky", "__cub$DeviceRadixSort"),
        *("__cub$DeviceRadixSortUnassignedScratchSize", "__cudnn$convForward", "__cudnn$convForwardGraph"),
        *("__cudnn$convBackwardInput", "__cudnn$convBackwardFilter", "__cudnn$convBiasActivationForward"),
        *("__cudnn$convReorderFilter", "__cudnn$convReorderFilterAndBias", "__cudnn$norm", "__cudnn$fusion"),
        "__cudnn$blockScaledDot",
        *(f"__cudnn$fmha{form}{side}" for form in _ATTENTION for side in ("", "Backward", "BackwardF8")),
        # jaxlib's own, as `registrations()` of its modules lists them.
        *LAPACK,
        *(f"{of}solver_{does}_ffi" for of in ("cu", "hip") for does in _BY_SOLVERS),
        *(f"{of}sparse_{does}_ffi" for of in ("cu", "hip") for does in _BY_SPARSE),
        *(f"{of}_{does}" for of in ("cu", "hip") for does in ("lu_pivots_to_permutation", "threefry2x32_ffi")),
        *(f"{of}_cholesky_update_ffi" for of in ("cu", "hip")),
        *("cudnn_rnn_ffi", "cudnn_rnn_bwd_ffi", "miopen_rnn_ffi", "miopen_rnn_bwd_ffi", "cpu_csr_sparse_dense_ffi"),
        *("tridiagonal_solve_perturbed_ffi", *FFTS),
    }
)
"""Calls that stay on their device, with the part of XLA or JAX that makes them."""

HOST = frozenset(
    {
        # JAX, jax/_src/callback.py and buffer_callback.py.
        *(f"xla_{form}python_{of}_callback" for form in ("", "ffi_", "ffi_partitioned_") for of in ("cpu", "gpu")),
        *(f"xla_buffer_python_{of}_callback{form}" for form in ("", "_cmd_buffer") for of in ("cpu", "gpu")),
        # libtpu.
        "HostExecute",
    }
)
"""Calls of functions of the host."""

HOST_PRIMITIVES = frozenset({"pure_callback", "io_callback", "debug_callback", "debug_print", "infeed", "outfeed"})
"""The same in jaxprs."""

KERNELS = frozenset({"tpu_custom_call", "mosaic_gpu", "mosaic_gpu_v2", "triton_kernel_call", "__gpu$xla.gpu.triton"})
"""Kernels, of which the jaxpr says what they do; of TPUs' the configuration says whether they communicate."""
