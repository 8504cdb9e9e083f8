"""A whole model in each engine, for bench/infer.py.

In: an engine, a model's file and inputs, threads; for PyTorch a file of networks.  Out: `Prepared`: `load()`, which the worker times together with
the first run, gives `once()`, one run and its outputs.
Each engine as its documentation says it is fastest with fixed shapes in fp32: ONNX Runtime with all graph optimisations, and once more
after its offline transformer optimiser where that fuses something; OpenVINO for latency; PyTorch in inference mode, and compiled with its weights frozen;
JAX compiled.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
Once = Callable[[], list[Any]]
ENGINES = ("jumar", "onnxruntime", "onnxruntime (optimizer)", "openvino", "torch", "torch.compile", "jax")
CACHED = ("jumar", "onnxruntime (optimizer)", "torch.compile")  # leave something in their cache folder that a second process begins with
# how a model's name begins: what ONNX Runtime's optimiser calls it
TRANSFORMERS = {"bert": "bert", "minilm": "bert", "gpt2": "gpt2", "vit": "vit"}


class Unsuited(RuntimeError):
    """An engine that has nothing of its own to do with a model."""


@dataclass(frozen=True)
class Prepared:
    """A model before it is loaded."""

    load: Callable[[], Once]
    version: str
    note: str = ""


def prepare(engine: str, row: str, threads: int, model: str, inputs: str, networks: str) -> Prepared:
    """Imports the engine.   row: the model's name; networks: the file of PyTorch's networks, or empty."""
    with np.load(inputs) as stored:
        arrays = dict(stored)
    match engine:
        case "jumar":
            return jumar(model, arrays, threads)
        case "onnxruntime":
            return onnxruntime(model, arrays, threads)
        case "onnxruntime (optimizer)":
            return onnxruntime(optimized(row, model), arrays, threads)
        case "openvino":
            return openvino(model, arrays, threads)
        case "jax":
            return jax(model, arrays)
    return torch(engine, row, networks, arrays, threads)


def jumar(model: str, inputs: Arrays, threads: int) -> Prepared:
    import jumar

    read = jumar.load  # the package is lazy: this imports what loads, which is not counted here either

    def load() -> Once:
        loaded = read(model, target="cpu", threads=threads)
        return lambda: loaded.run(None, inputs)

    return Prepared(load, f"jumar {jumar.VERSION}")


def onnxruntime(model: str, inputs: Arrays, threads: int) -> Prepared:
    import onnxruntime as ort

    def load() -> Once:
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, inputs)

    return Prepared(load, f"onnxruntime {ort.__version__}")


def optimized(row: str, model: str) -> str:
    """The model after ONNX Runtime's offline transformer optimiser, kept in the cache folder."""
    path = Path(os.environ["BENCH_CACHE"]) / "optimized.onnx"
    if path.is_file():
        return str(path)
    kind = next((kind for begin, kind in TRANSFORMERS.items() if row.startswith(begin)), "")
    if not kind or row.endswith("int8"):
        raise Unsuited("the transformer optimizer is for transformers in fp32")
    from onnxruntime.transformers import optimizer
    from onnxruntime.transformers.fusion_options import FusionOptions

    options = FusionOptions(kind)
    options.enable_gelu_approximation = False  # it would compute something else
    heads, width = (12, 384) if row.startswith("minilm") else (12, 768)
    found = optimizer.optimize_model(model, kind, num_heads=heads, hidden_size=width, optimization_options=options, opt_level=0)
    fused = {name: count for name, count in found.get_fused_operator_statistics().items() if count}
    if not fused:
        raise Unsuited("the transformer optimizer finds nothing to fuse")
    print(row, fused, file=sys.stderr)
    found.save_model_to_file(str(path))
    return str(path)


def openvino(model: str, inputs: Arrays, threads: int) -> Prepared:
    import openvino as ov

    def load() -> Once:
        core = ov.Core()
        read = core.read_model(model)
        read.reshape({port.any_name: list(inputs[port.any_name].shape) for port in read.inputs})
        settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
        compiled = core.compile_model(read, "CPU", settings)
        request = compiled.create_infer_request()

        def once() -> list[np.ndarray]:
            request.infer(inputs, share_inputs=True)
            return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]

        return once

    return Prepared(load, f"openvino {ov.__version__.partition('-')[0]}")


def torch(engine: str, row: str, networks: str, inputs: Arrays, threads: int) -> Prepared:
    """Eager, or compiled.   The weights must be those of the file: the driver compares the outputs."""
    import torch

    network, _, batch = row.rpartition("_b")
    if not networks or not batch.isdigit():
        raise Unsuited("no network in PyTorch for this model" if networks else "no networks in PyTorch (--networks)")
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    spec = importlib.util.spec_from_file_location("networks", networks)
    assert spec is not None and spec.loader is not None, "networks: a Python file"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    net, _, names, _ = module.build(network, int(batch))
    values = [torch.from_numpy(np.ascontiguousarray(inputs[name])) for name in names]

    def load() -> Once:
        run = net
        if engine == "torch.compile":
            from torch._inductor import config

            config.freezing = True
            run = torch.compile(net)

        def once() -> list[Any]:
            with torch.inference_mode() if engine == "torch" else torch.no_grad():
                found = run(*values)
            return list(found) if isinstance(found, tuple) else [found]

        return once

    return Prepared(load, f"torch {torch.__version__}")


def jax(model: str, inputs: Arrays) -> Prepared:
    """Through a reader of ours (onnx_to_jax.py); threads are those of the cores that this process is bound to."""
    import jax

    from rivals.onnx_to_jax import function

    run, weights = function(model)

    def load() -> Once:
        placed = jax.device_put(weights)
        compiled = jax.jit(run)
        return lambda: jax.block_until_ready(compiled(placed, inputs))

    return Prepared(load, f"jax {jax.__version__}")
