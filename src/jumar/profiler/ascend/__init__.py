"""A predicted step in the formats of Ascend's own profiler, so that its tools open it: `write_forecast`, `write_profile`, `write_op_summary`.

In: a `Timeline` of device/npu, and what is known of memory.  Out: a folder that msprof-analyze and MindStudio Insight read.
One file writes one kind of file: kernels.py the tables of kernels, host.py those of the host, trace.py the trace, communication.py and memory.py theirs.
Every figure comes from the twin; where a format has a text of its own (labels, versions, metadata) it says that it is predicted.
"""

from jumar.profiler.ascend.step import Life, Step, lives_of
from jumar.profiler.ascend.write import write_forecast, write_op_summary, write_profile

__all__ = ["Life", "Step", "lives_of", "write_forecast", "write_op_summary", "write_profile"]
