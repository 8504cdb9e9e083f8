"""Lines whose words are those of a failure though nothing failed: no rule takes them.

In: nothing.  Out: `HARMLESS`, a regex that scan.py asks of each line that a rule finds.
"""

from __future__ import annotations

HARMLESS = "|".join(
    (
        r"::\w+\S*.{0,60}\b(?-i:PASSED|SKIPPED|XFAIL|XPASS|DESELECTED)\b|^(?-i:PASSED|SKIPPED|XFAIL) \S+::|^\S+\.py [.sx]+ {0,40}\[ *\d+%\]",  # tests
        r"\[(?-i:INFO|DEBUG)\].{0,200}\b(error_?code|err_?no|ret_?(code|val)?|result|status)\s?(=|:|is)\s?(0x0+|0)\b",  # a code that means success
        r"(Failed to import from|No module named)\W{1,3}vllm\._(moe_|rocm_|flashmla_)?C\b|vllm\._(moe_)?C\b.{0,40}ModuleNotFoundError",  # CUDA's part
        r"Triton (is )?not installed or not compatible|Triton is not installed\. Using dummy decorators|Failed to load the CUDA",
        r"owner does not match the current owner",  # torch_npu, of a CANN that another user installed
        r"updated CANN_INSTALL_DIR from",
        r"\btime_?out (set to|configured to|defaults? to|default \d|disabled|enabled)\b",  # settings
        r"\b(nan|oom|memory|overflow|ecc) (guard|check|watch|protection)\w* (is )?(on|enabled|off|disabled|passed)\b",
        r"\b(loss|grad\w*|output)s? (is|are) finite\b|\balready \w+\W{1,3}(False|no)\b",  # what did not happen
        r"\bno (nan|inf|overflow|oom|errors?)s? (was |were )?(found|detected|seen|occurred)",
        r"\bECC\b.{0,24}\b0 errors\b|\bECC\b[ \w]{0,24}[:=] ?0\b",
    )
)
