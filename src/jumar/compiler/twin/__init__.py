"""The twin's part of the graph engine: what an Ascend NPU would do with a graph, stage by stage.

In: a graph as captured, a `Chip` of device/npu, options.  Out: `Forecast`.  forecast.py runs the stages; the passes that map, cast, lay out and fuse stand
in passes/ with the others.  Beside them: tasks.py (kernels in order), memory.py with memory_trace.py, train_memory.py and fit.py (what it takes, what makes it
fit), numerics.py with values.py, runs.py, findings.py and remedies.py (the chip's arithmetic), advice.py with variants.py and sizes.py (changes, each tried).
"""
