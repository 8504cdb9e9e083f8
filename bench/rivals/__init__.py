"""Rivals of the training benches: one worker process each, told over pipes what to do.

`driver.py` starts them and lets them take turns; `worker.py` is the process; `task.py` gives all of them the same weights and data;
`mindspore_rows.py` (MindSpore and Jumar: one source), `torch_rows.py` and `jax_rows.py` are the models.
"""
