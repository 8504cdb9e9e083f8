"""Says what a text is, by its content and then by its name: npu-smi, a version file, env, pip list, lsmod, a rank table, a log, ...

In: name and text (and the command that printed it, where that is known).  Out: a kind of KINDS for foreign.py.
"""

from __future__ import annotations

import re

from jumar.base import Said

WHAT_TO_COPY = Said("jumar explain doctor-from lists what to copy", "要复制的文件见 jumar explain doctor-from")
COLLECTED = r"^Versions of relevant libraries:|^\[pip3\] |^Collecting environment information"  # collect_env of PyTorch, vLLM, vllm-ascend
_CONTENT: tuple[tuple[str, str], ...] = (  # kind, pattern in the text; the first that is found decides
    ("collect-env", COLLECTED),
    ("npu-smi", r"npu-smi\s+\S+\s+Version:|^\s*NPU ID\s+: \d|^\s*Health(?: Status)?\s+: \S|Process id\s+\| Process name"),
    ("npu-smi", r"dcmi (?:module|model) initializ\w+ failed|npu-smi: command not found|^Fault Event Count\s+:"),
    ("file:/etc/ascend_install.info", r"^(?:Driver|Firmware)_Install_(?:Path_Param|Type)="),
    ("file:/usr/local/Ascend/firmware/version.info", r"^(?:compatible_version_drv|firmware_version)\s*="),
    ("file:/usr/local/Ascend/driver/version.info", r"^(?:ascendhal_version|compatible_version_fw)\s*="),
    ("toolkit", r"^package_name\s*=\s*Ascend-cann|^path=/\S*(?:Ascend|cann)"),
    ("version.cfg", r"^\w+_(?:running|installed|upgrade)_version\s*=\s*\["),
    ("known", r"^[A-Z]\w+_(?:Install_Type|UserName|Chip_Type)="),  # a package's own install.info, of which nothing is asked
    ("component", r"^version_dir\s*=|^required_package_\w+\s*="),
    ("nnal", r"Ascend-cann-atb"),
    ("rank-table", r'"(?:server_list|group_list|rank_list)"\s*:'),
    ("docker-inspect", r'"HostConfig"\s*:'),
    ("docker-run", r"^\s*(?:sudo\s+)?(?:docker|nerdctl|podman)\s+run\b"),
    ("hccn", r"^(?:net health status|link status)\s*:|tls switch\[|^\[device \d+\]\s*link (?:up count|change)"),
    ("file:/etc/hccn.conf", r"^(?:address|netmask|netdetect|gateway|mtu)_\d+\s*="),
    ("lspci", r"^(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] .*(?:Huawei|19e5:)"),
    ("lsmod", r"^Module\s+Size\s+Used by"),
    ("file:/proc/modules", r"^\w+ \d+ \d+ \S+ (?:Live|Loading) 0x"),
    ("file:/proc/meminfo", r"^MemTotal:\s+\d+ kB|^HugePages_Total:\s+\d+"),
    ("file:/etc/os-release", r"^(?:PRETTY_NAME|VERSION_ID)="),
    ("file:/proc/self/status", r"^CapEff:\s+[0-9a-f]{8,16}$"),
    ("file:/sys/fs/cgroup/devices/devices.list", r"^[abc] (?:\*|\d+):(?:\*|\d+) [rwm]{1,3}$"),
    ("file:/proc/self/mountinfo", r"^\d+ \d+ \d+:\d+ /\S* /\S* r[ow],"),
    ("mount", r"^\S+ on / type \w+ \("),
    ("file:/proc/self/limits", r"^Max (?:open files|locked memory)\s+"),
    ("df", r"^(?:Filesystem\s+.*(?:Use%|Capacity|Mounted)|文件系统\s+.*(?:已用%|挂载点))"),
    ("free", r"^\s*(?:total\s+used\s+free|总计\s+已用\s+空闲)"),
    ("ip", r"^\d+: \S+: <.*mtu \d+|flags=\d+<.*mtu \d+"),
    ("ports", r"^(?:State\s+Recv-Q|Proto\s+Recv-Q|tcp6?\s+\d+\s+\d+\s+\S+:\d+)"),
    ("file:/proc/net/tcp", r"^\s*sl\s+local_address"),
    ("ulimit", r"^open files\s+.*\(-n\)|^max locked memory\s"),
    ("pip", r"^Package\s+Version|^# packages in environment|^# Name\s+Version|^torch==|^numpy==|^torch[_-]npu==|^mindspore(?:-\w+)?=="),
    ("pip", r"^\s*- (?:python|pip|numpy|torch|torch[-_]npu|mindspore)={1,2}\d"),  # an environment of conda, as it is exported
    ("known", r"^(?:net\.ipv4|net\.core|kernel|vm|fs)\.\S+ = "),  # sysctl
    ("glibcxx", r"^GLIBCXX_3\.4(?:\.\d+)?$"),
    ("ldd", r"^ldd \(.*\) \d+\.\d+|^\s*lib\S+\.so\S* => (?:/\S+ \(0x|not found)"),
    ("uname", r"^Linux \S+ \d+\.\d+\S*"),
    ("dmesg", r"^\[\s*\d+\.\d+\] |^\[\S{1,3} \S{2,4}\s+\d+ [\d:]+ \d{4}\] "),
    ("id", r"^(?:uid=\d+\(\S+\) gid|用户id=\d+\(\S+\) 组id)="),
    ("python", r"^Python \d+\.\d+\.\d+\S*$"),
    ("kernels", r"^ascend\d\w+$"),
    ("sourced", r"^\s*(?:source|\.)\s+\S*set_env\.sh"),
    ("ls", r"^[bcdl-][rwxsStT-]{9}[.+@]?\s+\d+\s|^ls: (?:cannot access|无法访问)|^/dev/davinci"),
)
_LOOK = tuple((kind, re.compile(pattern, re.MULTILINE)) for kind, pattern in _CONTENT)

_COMMANDS = {  # first words of a command -> kind; where the words do not decide, the content does
    "npu-smi": "npu-smi",
    "hccn_tool": "hccn",
    "needs-glibcxx": "needs",
    "access": "access",
    "mount": "mount",
    "ls": "ls",
    "ll": "ls",
    "env": "env",
    "printenv": "env",
    "export": "env",
    "pip list": "pip",
    "pip3 list": "pip",
    "pip freeze": "pip",
    "pip3 freeze": "pip",
    "python -m pip": "pip",
    "python3 -m pip": "pip",
    "conda list": "pip",
    "lsmod": "lsmod",
    "dmesg": "dmesg",
    "uname": "uname",
    "docker inspect": "docker-inspect",
    "ldd": "ldd",
    "df": "df",
    "free": "free",
    "ifconfig": "ip",
    "ip": "ip",
    "ulimit": "ulimit",
    "id": "id",
    "groups": "groups",
    "whoami": "whoami",
    "ss": "ports",
    "netstat": "ports",
    "lspci": "lspci",
    "python --version": "python",
    "python3 --version": "python",
    "python -V": "python",
    "python3 -V": "python",
}
NO_LOG = (
    ".py",
    ".sh",
    ".json",
    ".yaml",
    ".yml",
    ".toml",
    ".ini",
    ".cfg",
    ".c",
    ".cpp",
    ".h",
    ".info",
    ".conf",
    ".csv",
    ".html",
    ".xml",
    ".svg",
)
_LOGS = re.compile(r"\.(?:log|out|err|stderr|stdout)(?:\.\d+)?$|plog|Traceback \(most recent call last\)|\[(?:ERROR|WARNING|INFO)\]")


def kind_of(name: str, text: str, command: str = "") -> str:
    """What the text is: a kind of the tables above, `file:PATH` for a file whose place is known, `env`, `log`, or `other`.

    >>> kind_of("x.txt", "ascendhal_version=7.35.23")
    'file:/usr/local/Ascend/driver/version.info'
    """
    kind = known_command(command)
    if kind:
        return kind
    name = re.sub(r"\.(?:gz|bz2|xz|zst)$", "", name)
    head = "\n".join(line[:500] for line in text[:200_000].split("\n"))
    if _is_log(name, head):
        return "log"
    if _is_environment(head):
        return "env"
    found = next((kind for kind, pattern in _LOOK if pattern.search(head)), "")
    if found == "ls" and re.search(r"kernel|opp", name) and not re.search(r"^[bcdl-][rwx-]{9}", head, re.MULTILINE):
        return "kernels"
    if found:
        return found
    if re.search(r"pip|packages|requirements|conda", name.lower()) and re.search(r"^[\w.-]+(?:==|\s+)\d", head, re.MULTILINE):
        return "pip"
    return "other" if name.lower().endswith(NO_LOG) else "log"


def known_command(command: str) -> str:
    """The kind of what that command prints, empty where the content must tell.

    >>> known_command("python3 -m pip list"), known_command("for i in 0 1; do hccn_tool -i $i -link -g; done")
    ('pip', '')
    """
    words = command.split() or [""]
    return _COMMANDS.get(" ".join(words[:2])) or _COMMANDS.get(" ".join(words[:3])) or _COMMANDS.get(words[0].rsplit("/", 1)[-1], "")


def _is_environment(text: str) -> bool:
    lines = [line for line in text.split("\n") if line.strip()]
    pairs = [line for line in lines if re.match(r"^\s*(?:export\s+|declare\s+-x\s+)?[A-Z_a-z]\w*=", line)]
    names = re.search(r"^(?:export |declare -x )?(?:PATH|LD_LIBRARY_PATH|HOME|PWD|ASCEND_\w+|HCCL_\w+|PYTHONPATH)=", text, re.MULTILINE)
    return bool(names) and len(pairs) * 2 >= len(lines)


def _is_log(name: str, text: str) -> bool:
    """A log that also holds an npu-smi table or versions stays a log; a listing that is named .log does not."""
    if re.search(r"^Traceback \(most recent call last\)", text, re.MULTILINE):
        return True
    marks = len(re.findall(r"\[(?:ERROR|WARNING|INFO|EVENT|DEBUG)\]", text[:20_000]))
    return marks >= 3 and bool(_LOGS.search(name) or marks >= 10)
