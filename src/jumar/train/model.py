"""`Model`: a network, a loss and an optimiser, trained, evaluated and run.

In: cells, datasets, callbacks, metrics.  Out: trained parameters, metrics by name, predictions.
The train network is one cell (forward, loss, gradients, update), so that in GRAPH mode a step is one captured call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from jumar import amp, nn
from jumar.context import ParallelMode
from jumar.frontend import Tensor
from jumar.train.callback import ModelCheckpoint, ProgressBar, RunContext
from jumar.train.callback._callback import CallbackManager, InternalCallbackParam, as_list
from jumar.train.dataset_helper import DatasetHelper
from jumar.train.errors import ArgumentFault, KindFault, TrainError, UnsupportedError, check_count, check_kind
from jumar.train.metrics import Loss, get_metrics
from jumar.train.serialization import SAVER
from jumar.train.state import Resume

_OPTIONS = ("loss_scale_manager", "keep_batchnorm_fp32", "boost_config_dict", "acc_level")
_IN_EVAL_OF_FIT = ("TimeMonitor",)  # of our callbacks; users' see everything


class DataFault(TrainError, ValueError):
    """A dataset that does not fit the network."""


class Model:
    """network: with loss_fn, gives what that takes; without, gives the loss.   metrics: names or a dict.   eval_network, eval_indexes: for other evaluations;
    the indexes name loss, prediction and label among its outputs.   amp_level: see `amp.auto_mixed_precision`.
    Options: loss_scale_manager, keep_batchnorm_fp32.
    """

    def __init__(
        self, network: Any, loss_fn: Any = None, optimizer: Any = None, metrics: Any = None, eval_network: Any = None,
        eval_indexes: list[int] | None = None, amp_level: str = "O0", boost_level: str = "O0", **kwargs: Any,
    ) -> None:  # fmt: skip
        check_kind("Model", "network", network, nn.Cell)
        unknown = [k for k in kwargs if k not in _OPTIONS]
        if unknown:
            raise ArgumentFault(f"Model: options must be among {', '.join(_OPTIONS)}, got {', '.join(unknown)}", code="train-argument")
        if boost_level != "O0" or kwargs.get("boost_config_dict") or kwargs.get("acc_level", "O0") != "O0":
            raise UnsupportedError(
                f"Model: boost_level must be 'O0', got {boost_level!r}", hint="networks run unchanged without it", code="train-unsupported"
            )
        if optimizer is None and amp_level != "O0":
            raise ArgumentFault(f"Model: amp_level must be 'O0' without an optimizer, got {amp_level!r}", code="train-argument")
        self._network, self._loss_fn, self._optimizer, self._amp_level = network, loss_fn, optimizer, amp_level
        self._loss_scale_manager = kwargs.get("loss_scale_manager")
        if self._loss_scale_manager is not None and optimizer is None:
            raise ArgumentFault("Model: optimizer must be there for a loss_scale_manager, got None", code="train-argument")
        self._train_network = self._build_train_network({k: v for k, v in kwargs.items() if k in _OPTIONS[:2]})
        self._metric_fns = get_metrics(metrics)
        self._eval_network, self._eval_indexes = self._build_eval_network(eval_network, eval_indexes)
        self._predict_network = network
        self._mode: tuple[int, bool] | None = None
        self._current_epoch_num = self._current_step_num = 0

    def _build_train_network(self, options: dict[str, Any]) -> Any:
        if self._optimizer is not None:
            return amp.build_train_network(self._network, self._optimizer, self._loss_fn, level=self._amp_level, **options)
        return nn.WithLossCell(self._network, self._loss_fn) if self._loss_fn is not None else self._network

    def _build_eval_network(self, given: Any, indexes: list[int] | None) -> tuple[Any, list[int] | None]:
        if not self._metric_fns:
            return given, indexes
        if given is not None:
            if indexes is not None and not (isinstance(indexes, list) and len(indexes) == 3):
                raise ArgumentFault(f"Model: eval_indexes must be a list of three, or None, got {indexes!r}", code="train-argument")
            return given, indexes
        if self._loss_fn is None:
            raise ArgumentFault(
                "Model: metrics must have an eval_network or a loss_fn, got neither",
                hint="give eval_network=..., whose outputs the metrics take, or no metrics", code="train-argument",
            )  # fmt: skip
        return nn.WithEvalCell(self._network, self._loss_fn, self._amp_level in ("O2", "O3", "auto")), [0, 1, 2]

    @property
    def train_network(self) -> Any:
        """Forward, loss, gradients and update, as one cell."""
        return self._train_network

    @property
    def predict_network(self) -> Any:
        """The network itself."""
        return self._predict_network

    @property
    def eval_network(self) -> Any:
        """What `eval` runs."""
        return self._eval_network

    def _set_train(self, network: Any, mode: bool) -> None:
        """Only on change: cells in another mode are captured anew."""
        if self._mode != (id(network), mode):
            network.set_train(mode)
            self._mode = (id(network), mode)

    # ------------------------------------------------------------------ training
    def train(
        self, epoch: int, train_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = False, sink_size: int = -1, initial_epoch: int = 0,
        *, resume: str | None = None,
    ) -> None:  # fmt: skip
        """Trains until `epoch` epochs are done.   callbacks: one or a list.   dataset_sink_mode: accepted; steps are the same, as on MindSpore's CPU.

        resume: a folder; the state is saved there, and a run that finds one goes on with the same bits (see `Resume`).
        """
        self._train("Model.train", epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch, None, 1, resume)

    def fit(
        self, epoch: int, train_dataset: Any, valid_dataset: Any = None, valid_frequency: int | Sequence[int] = 1, callbacks: Any = None,
        dataset_sink_mode: bool = False, valid_dataset_sink_mode: bool = False, sink_size: int = -1, initial_epoch: int = 0,
        *, resume: str | None = None,
    ) -> None:  # fmt: skip
        """Trains, and evaluates every `valid_frequency` epochs or after those listed.   The rest as `train`."""
        check_kind("Model.fit", "valid_frequency", valid_frequency, (int, list))
        check_kind("Model.fit", "valid_dataset_sink_mode", valid_dataset_sink_mode, bool)
        if valid_dataset is not None and not self._metric_fns:
            raise ArgumentFault("Model.fit: metrics of the Model must be given for a valid_dataset, got none", code="train-argument")
        self._train(
            "Model.fit",
            epoch,
            train_dataset,
            callbacks,
            dataset_sink_mode,
            sink_size,
            initial_epoch,
            valid_dataset,
            valid_frequency,
            resume,
        )

    def _train(
        self, where: str, epoch: int, dataset: Any, callbacks: Any, sink_mode: bool, sink_size: int, initial_epoch: int, valid: Any,
        frequency: int | Sequence[int], resume: str | None,
    ) -> None:  # fmt: skip
        check_kind(where, "dataset_sink_mode", sink_mode, bool)
        check_count(where, "epoch", epoch)
        check_count(where, "initial_epoch", initial_epoch, 0)
        check_kind(where, "sink_size", sink_size, int)
        if initial_epoch >= epoch:
            raise ArgumentFault(f"{where}: epoch must be above initial_epoch, got {epoch} and {initial_epoch}", code="train-argument")
        if sink_size < -1 or sink_size == 0:
            raise ArgumentFault(f"{where}: sink_size must be -1 or positive, got {sink_size}", code="train-argument")
        batches = dataset.get_dataset_size()
        if batches == 0:
            raise DataFault(f"{where}: train_dataset must have batches, got none", code="train-data")
        params = self._parameters("train", callbacks)
        params.update(
            train_network=self._train_network, epoch_num=epoch - initial_epoch, batch_num=sink_size if sink_mode and sink_size > 0 else batches,
            loss_fn=self._loss_fn, optimizer=self._optimizer, train_dataset=dataset, train_dataset_element=None, last_save_ckpt_step=None,
            latest_ckpt_file=None, loss_scale_mananger=self._loss_scale_manager, initial_step=None, dataset_sink_mode=False,
        )  # fmt: skip
        listed = [c for c in params.list_callback if not isinstance(c, Resume)]
        resumes = [c for c in params.list_callback if isinstance(c, Resume)] or ([Resume(resume)] if resume is not None else [])
        try:
            with CallbackManager([ProgressBar(), *listed, *resumes]) as manager:
                self._epochs(params, manager, epoch, initial_epoch, valid, frequency)
        except BaseException:
            for callback in listed:
                if isinstance(callback, ModelCheckpoint):
                    callback.save_after_error(self._train_network, self._current_epoch_num, self._current_step_num)
            raise
        finally:
            SAVER.wait()

    def _parameters(self, mode: str, callbacks: Any) -> Any:
        params = InternalCallbackParam()
        params.update(
            mode=mode,
            cur_step_num=0,
            list_callback=as_list(callbacks),
            network=self._network,
            parallel_mode=ParallelMode.STAND_ALONE,
            device_number=1,
        )
        return params

    def _epochs(self, params: Any, manager: Any, epoch: int, initial_epoch: int, valid: Any, frequency: int | Sequence[int]) -> None:
        dataset = params.train_dataset
        context = RunContext(params)
        self._mode = None
        self._set_train(self._train_network, True)
        manager.call("on_train_begin", context)
        first = params.get("resume_epoch", initial_epoch)  # Resume has found a state
        helper = DatasetHelper(dataset, False, -1, max(1, epoch - first))
        try:
            for number in range(first + 1, epoch + 1):
                params.cur_epoch_num = self._current_epoch_num = number
                self._current_step_num = 0
                manager.call("on_train_epoch_begin", context)
                for row in helper:
                    self._step(params, manager, context, row)
                    if context.get_stop_requested():
                        break
                if valid is not None and "net_outputs" in params and _due(number, frequency):
                    self._eval_in_fit(params, manager, valid)
                if "net_outputs" in params:
                    manager.call("on_train_epoch_end", context)
                params.pop("metrics", None)
                params.pop("eval_results", None)
                if context.get_stop_requested():
                    break
            params.setdefault("cur_epoch_num", first)
            manager.call("on_train_end", context)
        finally:
            helper.release()

    def _step(self, params: Any, manager: Any, context: RunContext, row: tuple[Any, ...]) -> None:
        if self._loss_fn is not None and len(row) != 2:
            raise DataFault(
                f"Model.train: train_dataset must give data and label for a loss_fn, got {len(row)} columns",
                hint="a network that gives the loss itself, and loss_fn=None, takes any number", code="train-data",
            )  # fmt: skip
        params.cur_step_num += 1
        self._current_step_num = (params.cur_step_num - 1) % params.batch_num + 1
        params.train_dataset_element = row
        manager.call("on_train_step_begin", context)
        self._set_train(self._train_network, True)
        params.net_outputs = outputs = self._train_network(*row)
        scaling = self._loss_scale_manager
        if scaling is not None and scaling.get_drop_overflow_update():
            scaling.update_loss_scale(bool(np.all(outputs[1].asnumpy())))
        manager.call("on_train_step_end", context)

    # ------------------------------------------------------------------ evaluating
    def eval(self, valid_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = False) -> dict[str, Any]:
        """Metrics over a dataset, by name."""
        check_kind("Model.eval", "dataset_sink_mode", dataset_sink_mode, bool)
        if not self._metric_fns:
            raise ArgumentFault("Model.eval: metrics of the Model must be given, got none", code="train-argument")
        params = self._parameters("eval", callbacks)
        params.update(eval_network=self._eval_network, valid_dataset=valid_dataset, batch_num=valid_dataset.get_dataset_size())
        with CallbackManager(callbacks) as manager:
            return self._evaluate(params, manager, valid_dataset, None)

    def _eval_in_fit(self, params: Any, manager: Any, valid: Any) -> None:
        """Metrics for callbacks of training: `metrics`, and `eval_results` with the mean loss as `eval_loss`."""
        kept = {k: params[k] for k in ("mode", "cur_step_num", "batch_num", "dataset_sink_mode", "net_outputs")}
        params.update(eval_network=self._eval_network, valid_dataset=valid, batch_num=valid.get_dataset_size(), mode="eval", cur_step_num=0)
        seen = [c for c in manager._callbacks if not type(c).__module__.startswith("jumar.") or type(c).__name__ in _IN_EVAL_OF_FIT]
        loss = Loss()
        # not entered again: they are in use
        self._evaluate(params, CallbackManager(seen), valid, loss if self._eval_indexes is not None else None)
        params.update(kept)

    def _evaluate(self, params: Any, manager: Any, dataset: Any, loss: Loss | None) -> dict[str, Any]:
        assert self._metric_fns, "callers check"
        for metric in self._metric_fns.values():
            metric.clear()
        context = RunContext(params)
        params.dataset_sink_mode = False
        manager.call("on_eval_begin", context)
        self._set_train(self._eval_network, False)
        helper = DatasetHelper(dataset, False, -1, 1)
        try:
            manager.call("on_eval_epoch_begin", context)
            for row in helper:
                params.cur_step_num += 1
                params.eval_dataset_element = row
                manager.call("on_eval_step_begin", context)
                params.net_outputs = outputs = self._eval_network(*row)
                manager.call("on_eval_step_end", context)
                self._measure(outputs, loss)
                if context.get_stop_requested():
                    break
            manager.call("on_eval_epoch_end", context)
        finally:
            helper.release()
        found = params.metrics = {name: metric.eval() for name, metric in self._metric_fns.items()}
        if loss is not None:
            params.eval_results = {**found, "eval_loss": loss.eval()}
        manager.call("on_eval_end", context)
        return found

    def _measure(self, outputs: Any, loss: Loss | None) -> None:
        assert self._metric_fns is not None, "callers check"
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        if not isinstance(outputs, tuple) or (self._eval_indexes is not None and len(outputs) < 3):
            what = f"a tuple of {len(outputs)}" if isinstance(outputs, tuple) else type(outputs).__name__
            raise DataFault(f"Model.eval: eval_network must give a tuple of at least three, got {what}", code="train-data")
        if loss is not None and self._eval_indexes is not None:
            loss.update(outputs[self._eval_indexes[0]])
        for metric in self._metric_fns.values():
            if self._eval_indexes is None:
                metric.update(*outputs)
            elif isinstance(metric, Loss):
                metric.update(outputs[self._eval_indexes[0]])
            else:
                metric.update(outputs[self._eval_indexes[1]], outputs[self._eval_indexes[2]])

    # ------------------------------------------------------------------ running
    def predict(self, *predict_data: Any, backend: str | None = None, config: Any = None) -> Any:
        """The network's outputs."""
        if backend is not None:
            raise UnsupportedError(f"Model.predict: backend must be None, got {backend!r}", code="train-unsupported")
        for value in predict_data:
            if isinstance(value, Tensor) and value.size == 0:
                raise DataFault("Model.predict: inputs must not be empty, got a tensor without elements", code="train-data")
            if value is not None and not isinstance(value, Tensor | int | float | str):
                raise KindFault(
                    f"Model.predict: inputs must be tensors, numbers or texts, got {type(value).__name__}", code="train-argument"
                )
        self._set_train(self._predict_network, False)
        return self._predict_network(*predict_data)

    def build(
        self, train_dataset: Any = None, valid_dataset: Any = None, sink_size: int = -1, epoch: int = 1, sink_mode: bool = True
    ) -> None:
        """Has no effect: the first step compiles, and compiled steps are kept on disk.   MindSpore has it on Ascend only."""
        check_count("Model.build", "epoch", epoch)
        if train_dataset is None and valid_dataset is None:
            raise ArgumentFault("Model.build: train_dataset or valid_dataset must be given, got neither", code="train-argument")

    def infer_predict_layout(self, *predict_data: Any, skip_backend_compile: bool = False) -> NoReturn:
        """Not supported: layouts are of networks on many devices."""
        raise UnsupportedError(
            "Model.infer_predict_layout: layouts are of networks on many devices; Jumar has one", code="train-unsupported"
        )

    def infer_train_layout(self, train_dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1) -> NoReturn:
        """Not supported: layouts are of networks on many devices."""
        raise UnsupportedError("Model.infer_train_layout: layouts are of networks on many devices; Jumar has one", code="train-unsupported")


def _due(epoch: int, frequency: int | Sequence[int]) -> bool:
    return epoch % frequency == 0 if isinstance(frequency, int) else epoch in frequency
