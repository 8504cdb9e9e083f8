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
        r"\btime_?out (set to|configured to|defaults? to|default \d+|disabled|enabled)\b",  # settings
        r"\b(nan|oom|memory|overflow|ecc) (guard|check|watch|protection)\w* (is )?(on|enabled|off|disabled|passed)\b",
        r"\b(loss|grad\w*|output)s? (is|are) finite\b|\balready \w+\W{1,3}(False|no)\b",  # what did not happen
        r"\bno (nan|inf|overflow|oom|errors?)s? (was |were )?(found|detected|seen|occurred)",
        r"\bECC\b.{0,24}\b0 errors\b|\bECC\b[ \w]{0,24}[:=] ?0\b",
        # a step in good numbers, with its counters and flags
        r"\bloss: ?\[?-?\d[^,]*,.{0,200}\boverflow cond: False, loss_scale: [\d.]+(, global_norm: \[?[\d.]+\]?[^a-z]*)?$",
        r"iteration +\d+/ *\d+ \|([^|:]*: *-?[\d.]+(E[+-]?\d+)? *\|)*[^|:]*skipped iterations: +0 *\|[^|:]*nan iterations: +0 *\|",
        r"iteration +\d+/ *\d+ \|.{0,300}loss scale: \d{6,}\.0 .{0,200}skipped iterations: +1 *\|[^|:]*nan iterations: +0 *\|",  # the scale is looked for
        r"\b(out of memory|oom|nan|inf|overflow|timeout|retry|retries|dropped|fail\w*|error)( \w+){0,2} ?[:=] ?0\s*$",
        # Python's own
        r"\b(?-i:(Pending)?DeprecationWarning|FutureWarning|SyntaxWarning|ImportWarning|ResourceWarning): ",
        r"Warning:.{0,200}(is deprecated|will be (removed|deprecated) in|deprecated and will be)",
        r"\b(can|may) (be )?(safely )?ignored?( this)?( warning)?\b|\bsafe(ly)? (to )?ignore|\bfalling back to regular HTTP|[-,(] ?ignored\)?\s*$",
        r"given NumPy array is not writ|Exception ignored in|There appear to be \d+ leaked|current process just got forked",
        # libraries that look for what they can do without
        r"hf_xet|\bwandb: (ERROR|WARNING)|No CUDA runtime is found, using|async_io requires the dev libaio|Failed to load image Python extension",
        r"Special tokens have been added|slow image processor|longer than the specified maximum sequence length|Setting OMP_NUM_THREADS",
        r"WARNING\W{1,3}(root\W)?nccl not available|older driver with an? \w+ \d+ series",
        # torch and torch_npu
        r"\[W.{0,40}socket\.cpp.{0,160}errno: (97|99)\b|Unable to resolve hostname to a \(local\) address|loopback address as fallback",
        r"current tensor is running as_strided|Check input storage_offset.{0,40}untrustworthy|allow_inter[na]+l_format ?= ?False, tensor will be created",
        r"oprator of index_put_|operator of index_put_|expandable_segments currently defaults|\bTimeout not set, default|(is|are) replaced with torch\.npu",
        r"will be disabled by transfer_to_npu|backend in torch\.distributed\.init_process_group set to hccl|HCCL_(CONNECT|EXEC)_TIMEOUT\S* not set, default",
        # vLLM
        r"Failed to import from vllm\._C with|Cannot use FA version \d|already registered, and will be overwritten|Methods \S+ not implemented in <",
        r"Waiting for \d+ local, \d+ remote core engine|VLLM_USE_V1=1 with|usage should be considered experimental",
        # MindSpore
        r"methods may not be supported in later version|preprocess_batch: \d+; batch_queue|will reduce precision from int64",
        r"set(ting)? device sat ?mode, ret: 0",
        # CANN
        r"HCCL_WHITELIST_DISABLE is not set|fusion config file is empty|can ?not (get|find) (the )?(tune bank|kernel bin in cache)|\baclrtSetDevice repeated",
        r"\[(?-i:EVENT|INFO)\] HCCL\(.{0,200}\b(set by default to|is set to)\b|no device ip, use host nic|optional plugin .{0,200}does not exist, skipped",
        r"\b(httpsEnabled|https) is false|npuMemSize is -1",
    )
)
