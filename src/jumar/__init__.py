"""Jumar: neural networks to machine code of our own, every layer explained: from ONNX files, and from MindSpore scripts.

In: a model file, or a script.  Out: a Python function from arrays to arrays, or what the script does.

    import jumar
    m = jumar.load("model.onnx")
    y = m(x)

The other names of this module are MindSpore's: `jumar.nn`, `jumar.Tensor`, `jumar.jit`; `jumar run script.py` runs a script that
imports `mindspore`.  All of them are imported when they are first asked for: a deployed package runs without them.
"""

from __future__ import annotations

import importlib
import sys

from jumar.version import MINDSPORE_VERSION, VERSION

TYPE_CHECKING = False  # type checkers know the name; importing `typing` for it takes ten times as long as all the rest
if TYPE_CHECKING:
    from typing import Any

    from jumar.frontend import load


_ROOMS = (
    "amp common communication context dataset experimental hal log mindrecord mint multiprocessing nn numpy ops parallel profiler train utils "
    "version _c_expression _checkparam _extends device_context device_manager boost graph"
)
ROOMS = frozenset(_ROOMS.split())

_FACES = {  # where each name lives: module -> its names
    "frontend": "load",
    "common.dtype": (
        "Int QuantDtype TensorType Type _null _NullType bfloat16 bool bool_ byte cdouble cfloat complex128 complex64 double dtype_to_nptype "
        "dtype_to_pytype float float16 float32 float64 float8_e4m3fn float8_e5m2 float_ get_py_obj_dtype half hifloat8 int int16 int32 int64 int8 "
        "int_ intc intp list_ long number pytype_to_dtype qint4x2 short single string tensor_type tuple_ type_none ubyte uint uint16 uint32 "
        "uint64 uint8 uintc uintp ushort"
    ),
    "common.tensor": "Tensor from_numpy swap_tensors tensor",
    "common.parameter": "Parameter ParameterTuple",
    "common.sparse_tensor": "COOTensor CSRTensor RowTensor SparseTensor",
    "common.api": (
        "JitConfig Symbol _no_grad enable_dynamic flops_collection jit jit_class lazy_inline ms_memory_recycle mutable no_inline "
        "register_saved_tensors_hooks saved_tensors_hooks set_recursion_limit"
    ),
    "common.generator": "Generator default_generator get_rng_state initial_seed manual_seed seed set_rng_state",
    "common.seed": "get_seed set_seed",
    "common.device": "DeviceCtx",
    "common.dump": "set_dump",
    "common.recompute": "recompute",
    "common._grad_function": "_Function",
    "common.file_system": "mindio_preload set_mindio_server_info",
    "common.storage": "UntypedStorage",
    "context": (
        "COMPATIBLE GRAPH_MODE LAX PYNATIVE_MODE STRICT ParallelMode get_auto_parallel_context get_context get_ps_context "
        "reset_auto_parallel_context reset_ps_context set_auto_parallel_context set_context set_ps_context"
    ),
    "device_manager": "get_current_device set_deterministic set_device",
    "log": "get_level get_log_config",
    "hal": (
        "Event MemPool Stream StreamCtx communication_stream current_stream default_stream dispatch_threads_num empty_cache launch_blocking "
        "max_memory_allocated max_memory_reserved memory_allocated memory_reserved memory_stats memory_summary reset_max_memory_allocated "
        "reset_max_memory_reserved reset_peak_memory_stats set_cpu_affinity set_cur_stream set_kernel_launch_group set_memory synchronize"
    ),
    "ops": "constexpr is_tensor",
    "frontend.grad": "get_grad grad jacfwd jacrev jvp value_and_grad vjp vmap",
    "profiler": "EnvProfiler Profiler",
    "parallel": (
        "Layout build_searched_strategy get_algo_parameters load_distributed_checkpoint load_segmented_checkpoints merge_pipeline_strategys "
        "merge_sliced_parameter parameter_broadcast rank_list_for_transform reset_algo_parameters reshard restore_group_info_list "
        "set_algo_parameters shard sync_pipeline_shared_parameters transform_checkpoint_by_rank transform_checkpoints unified_safetensors"
    ),
    "train": (
        "Accuracy BackupAndRestore BleuScore Callback CheckpointConfig ConfusionMatrix ConfusionMatrixMetric ConvertModelUtils ConvertNetUtils "
        "CosineSimilarity DatasetHelper Dice DynamicLossScaleManager EarlyStopping F1 Fbeta FixedLossScaleManager FlopsUtilizationCollector "
        "HausdorffDistance History LambdaCallback LearningRateScheduler Loss LossMonitor LossScaleManager MAE MSE MeanSurfaceDistance Metric "
        "Model ModelCheckpoint OcclusionSensitivity OnRequestExit Perplexity Precision ROC Recall ReduceLROnPlateau RootMeanSquareDistance "
        "RunContext SummaryCollector SummaryLandscape SummaryRecord TimeMonitor Top1CategoricalAccuracy Top5CategoricalAccuracy "
        "TopKCategoricalAccuracy TrainFaultTolerance async_ckpt_thread_status auc build_train_network ckpt_to_safetensors "
        "connect_network_with_dataset data_sink export export_split_mindir get_ckpt_path_with_strategy get_metric_fn load_checkpoint "
        "load_checkpoint_async load_mindir load_param_into_net names rearrange_inputs safetensors_to_ckpt save_checkpoint save_mindir"
    ),
    "mindrecord": (
        "Cifar100ToMR Cifar10ToMR CsvToMR FAILED FileReader FileWriter ImageNetToMR MindPage MnistToMR SUCCESS TFRecordToMR set_dec_mode "
        "set_enc_key set_enc_mode"
    ),
    "utils": "from_dlpack run_check to_dlpack",
    "tools.alias": "as_mindspore",
    "tools.notebook": "load_ipython_extension",
    "_c_expression": "_reuse_data_ptr frombuffer",
}  # fmt: skip
_PLACES: dict[str, tuple[str, str]] = {"dtype": ("common.dtype", ""), "export": ("train", "export")}
_PLACES |= {name: (module, name) for module, names in _FACES.items() for name in names.split()}
# names of MindSpore's that Jumar does not have, so that the error can say so
_NOT_YET = (
    "MsDispatchMode PluggableAllocator RSCPluginHandle StreamLimitCtx TFTCommValue ExitByRequest comm_exec_order_check dryrun get_device_limit "
    "get_sdc_detect_result get_stream_limit load_obf_params_into_net memory_replay obfuscate_ckpt reset_stream_limit "
    "runtime_execution_order_check safeguard sdc_detect_start sdc_detect_stop set_device_limit set_kernel_launch_capture set_stream_limit "
    "stress_detect tools use_mem_pool default_config Node NodeType ScopedValue SymbolTree rewrite onnx"
)
__all__ = ["VERSION", "load"]


def __getattr__(name: str) -> Any:
    """Finds a name of the public face and keeps it."""
    played = sys.modules.get("mindspore") is sys.modules[__name__]  # a script that asks for a version wants to know whose API this is
    if played and "jumar.tools.alias" not in sys.modules:
        importlib.import_module("jumar.tools.alias").answer_versions()
    if name == "__version__":
        return MINDSPORE_VERSION if played else VERSION
    module, attribute = _PLACES.get(name) or ((name, "") if name in ROOMS else ("", ""))
    if not module or (name.startswith("__") and name.endswith("__")):
        raise AttributeError(_missing(name))
    full = f"{__name__}.{module}"
    try:
        found = importlib.import_module(full)
    except ModuleNotFoundError as error:
        if error.name is None or not (full == error.name or full.startswith(f"{error.name}.")):
            raise
        raise AttributeError(_missing(name)) from error
    if attribute:
        try:
            found = getattr(found, attribute)
        except AttributeError as error:
            raise AttributeError(_missing(name)) from error
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES, *ROOMS, "__version__"})


def _missing(name: str) -> str:
    """What to say of a name that is not here."""
    text = f"module 'jumar' has no attribute {name!r}"
    if name in _PLACES or name in ROOMS or name in _NOT_YET.split():
        return f"{text}: MindSpore {MINDSPORE_VERSION} has mindspore.{name}, Jumar does not have it yet; docs/names.md lists what there is"
    from jumar.base import nearest  # noqa: PLC0415  (only a misspelt name pays for it)

    hint = nearest(name, [*_PLACES, *ROOMS])
    return f"{text}{f'; {hint}' if hint else ''}"
