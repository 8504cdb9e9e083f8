"""Where texts name users and hosts, and which names are words of the field, too.

In: the rules, for their words.  Out: `PLACES`, read by neutralise.py.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import re2

from jumar.tools.knowledge import load_rules

_ACCOUNTS = """root HwHiAiUser HwDmUser HwBaseUser ma-user mindx hwMindX nobody daemon bin sys sudo video render users localhost localhost.localdomain
git shared public none null unknown self wheel docker adm staff disk tty audio input kvm games dialout plugdev cdrom nogroup www-data mail systemd-network
systemd-journal ssh messagebus polkitd dbus 工号 员工号 员工 电话 联系 姓名"""
KEPT = frozenset(_ACCOUNTS.split())  # accounts that every machine of the kind has, and names of no machine
_WORDS = "ubuntu debian centos euler openeuler kylin user admin test work data model server worker master npu gpu ai dev lab"
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"
STAFF = r"[a-z](?:wx)?(?:00|30|50|60|84)\d{6}"  # a number that some give their staff: z00412345
_HAN = r"[\x{4e00}-\x{9fff}]"
_HOST = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}"
_SUBMITTED = (
    "SLURM_SUBMIT_HOST|SLURM_LAUNCH_NODE_IPADDR|SLURM_SRUN_COMM_HOST|BatchHost|PBS_O_HOST|LSB_SUB_HOST|HYDRA_HOST|OMPI_MCA_orte_hnp_host"
)
_FATES = "lost|died|dead|is|was|has|failed|not|unreachable|down|exited|disconnected|left|timed"
PLACES: tuple[tuple[str, Any], ...] = tuple(  # where a name of a kind stands: group 1, and 2 where the second kind is named
    (kind, re2.compile(pattern))
    for kind, pattern in (
        ("user host", rf"({_NAME})@({_HOST})(?::\s?|\s)[^\s\]#$]{{0,200}}\]?\s?[#$](?:\s|$)"),
        ("user", r"(?:/home|/Users|\\Users\\|[A-Z]:/Users)[/\\]*([^\s/\\:;,\"'<>|*()\[\]{}=]+)"),
        ("user", rf"(?:\buid|用户id)=\d+\(({_NAME})\)"),
        ("user", rf"\b(?:USER|LOGNAME|USERNAME|SUDO_USER|NB_USER)[\"']?\s*[=:]\s*[\"']?({_NAME})"),
        ("user", rf"(?i)\b(?:logged in as|login name|user ?name)[\"']?\s*[=:]\s*[\"']?({_NAME})"),
        ("user", rf"\b[Uu]ser[\"']?[ \t]*[:=：][ \t]*[\"']?({_NAME})[\"']?(?:[\s,，;；。、&]|$)"),
        ("user", rf"(?:用户名?|姓名|账号|帐号|联系人|负责人|作者|提交人|申请人|管理员)[ \t]*[:=：为是][ \t]*({_HAN}{{2,4}}|{_NAME})(?:[\s,，;；。、)）]|$)"),
        ("user", rf"(?:姓名|联系人|负责人)[ \t]+({_HAN}{{2,4}})(?:[\s,，;；。、)）]|$)"),
        ("user", rf"(?i)\blogged in as:? {_NAME} \(({_NAME})\)"),
        ("staff", r"(?:工号|员工号|employee (?:id|no)\.?)[ \t]*[:=：]?[ \t]*([A-Za-z]{0,3}\d{4,12})"),
        ("user", rf"/users/({_NAME})(?:[/\s\"',;:)]|$)"),
        ("member", rf"/(?:data|mnt|nas|nfs|share|shared|disk\d{{0,2}}|cache|sfs|obs)/(?:nas|nfs|share|homes?|people|staff|workspace)/({_NAME})"),
        ("member", rf"(?:^|[\s\"'=:(,])/(?:nas|nfs|share|homes)/({_NAME})"),
        ("user group", rf"(?:^|\s)[bcdlps-][rwxsStT-]{{9}}[.+@]?\s+\d+\s+({_NAME})\s+({_NAME})\s"),
        ("host", rf"(?m)^Linux ({_HOST}) \d+\.\d+\.\d"),
        ("host", rf"\b(?:HOSTNAME|HOST|NODE_NAME|MY_NODE_NAME|SLURMD_NODENAME|NODENAME)[\"']?\s*[=:]\s*[\"']?({_HOST})"),
        ("host", rf"(?i)\b(?:host_?name|node_?name)[\"']?\s*(?:[=:]|is)\s*[\"']?({_HOST})"),
        ("host", rf"(?m)^(?:[A-Z][a-z]{{2}}\s+\d{{1,2}}|\d{{4}}-\d\d-\d\d)[ T]\d\d:\d\d:\d\d\S*\s+({_HOST})\s+(?:kernel|systemd|dockerd|kubelet)\b"),
        ("host", rf"(?m)^\s*(?:\d{{1,3}}\.){{3}}\d{{1,3}}[ \t]+({_HOST})[ \t]*$"),
        ("host", rf"\bHost:[ \t]+({_HOST})(?:[\s(,;]|$)"),
        ("host", rf"(?m)(?:^|[\s:])({_HOST})[ \t]+slots=\d"),
        ("host", rf"(?m)^({_HOST}):/\S* /\S* (?:nfs|ceph|lustre|cifs|fuse)"),
        ("host", rf"\b({_HOST}\.(?:corp|internal|intranet|lan|local))[:/]\d*"),
        ("host", r"\b(ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3})\b"),
        # torch, torchrun, HCCL
        ("host", rf"\[({_HOST})\]:\d{{2,5}}\b"),
        ("host", rf"(?i)--?(?:master|node|head|server|dashboard|sched)[-_]?(?:addr|address|host|ip)(?:=|[ \t]+)[\"']?({_HOST})"),
        ("host", rf"(?i)\b(?:master|node|head|sched)_?(?:addr|address|host)\\?[\"']?[ \t]*[=:][ \t]*\\?[\"']?({_HOST})"),
        ("host", rf"(?i)\b(?:rdzv|etcd|rendezvous)[-_](?:endpoint|host|addr)\w*\\?[\"']?(?:[ \t]*[=:][ \t]*|[ \t]+)\\?[\"']?({_HOST}):\d"),
        ("host", rf"(?i)\b(?:host_?name|node_?name|local_?host|remote_?host|root_?host|server_?name|host)\[({_HOST})\]"),
        ("node", rf"(?i)\b(?:server_?id|agent_?id|local_?addr|remote_?addr)\\?[\"']?\s*[=:\[]\s*\\?[\"']?({_HOST})"),
        ("host", rf"(?m)^[ \t]*host[ \t]*:[ \t]*({_HOST})[ \t]*$"),
        ("host", r"\b[a-z][a-z+]{1,15}://(?:[^\s/@\"']*@)?([A-Za-z0-9][A-Za-z0-9_-]{0,63}):\d{2,5}\b"),
        ("host", rf"(?i)\bconnect\w*[ \t]+(?:to|from)[ \t]+(?:(?:master|host|server|node|peer|root|rank)[ \t]+)?[\[\"'(]?({_HOST})[\])\"']?:\d{{2,5}}\b"),
        ("node", rf"(?i)\bconnect\w*[ \t]+(?:to|from)[ \t]+(?:(?:the|master|host|server|node|peer|head)[ \t]+)*[\"']?({_HOST})"),
        # slurm, MPI, pdsh, ssh, name servers
        ("host", rf"\bs(?:run|batch|alloc): (?:error|fatal|info|warning): ({_HOST}): tasks?\b"),
        ("host", rf"\*\*\* (?:JOB|STEP) \S+ ON ({_HOST}) "),
        ("host", rf"\b(?:{_SUBMITTED})=({_HOST})"),
        ("host", rf"\bAllocNode:Sid=({_HOST}):"),
        ("node", r"(?m)^\[([A-Za-z][A-Za-z0-9-]*):\d{3,7}\]"),
        ("node", rf"(?m)^({_HOST}): (?:Traceback\b|\[(?:ERROR|INFO|WARNING|EVENT|20\d\d|rank|[EWI]\d{{3}})|ssh\b|bash:|20\d\d-|[EWI]\d{{4}} )"),
        ("host", rf"\bpdsh@({_HOST}):"),
        ("host", rf"\bpdsh(?:@{_HOST})?: ({_HOST}):"),
        ("host", rf"\bconnect to host ({_HOST}) port\b"),
        ("host", rf"(?i)\b(?:ping6?|ssh|traceroute|getaddrinfo|lookup): ({_HOST}): (?:Name or service|Temporary failure|unknown host|no such host)"),
        ("host", rf"(?i)\b(?:resolve|resolving|getaddrinfo(?: for)?)[ \t]+(?:(?:host|hostname|name|address|peer)[ \t:]+)?[\"'`]?({_HOST}\d)\b"),
        ("host", rf"(?i)\bresolve (?:host|hostname|host name|name)[ \t:]+[\"'`]?({_HOST})"),
        ("host", rf"(?i)(?:Name or service not known|name resolution)\)?[:,]? [\"'(]({_HOST})"),
        ("host", rf"\bPermanently added '({_HOST})"),
        ("user host", rf"\b(?:ssh|scp|sftp|rsync|ssh-copy-id|sshfs)\b[^\n]{{0,200}}?[ \t]({_NAME})@({_HOST})"),
        ("user host", rf"(?:^|[\s\"'])({_NAME})@({_HOST}):(?:[/~]| Permission denied)"),
        ("node", rf"\bssh[ \t]+(?:-\S+[ \t]+){{0,6}}({_HOST})"),
        # Kubernetes, Ray
        ("host", rf"\bnodeName\\?[\"']?:[ \t]*\\?[\"']?({_HOST})"),
        ("node", rf"(?i)\bnodes?/({_HOST})"),
        ("node", rf"(?m)^({_HOST})[ \t]+(?:Not)?Ready(?:,\w+)?[ \t]"),
        ("host", rf"(?m)^Node:[ \t]+({_HOST})/"),
        ("node", rf"\bSuccessfully assigned \S+ to ({_HOST})"),
        ("host host", r"\b([a-z0-9][a-z0-9-]*)\.([a-z0-9][a-z0-9-]*)\.svc\b"),
        ("host", rf"\b(?:POD_NAME|POD_NAMESPACE|MY_POD_NAME|MY_POD_NAMESPACE|VC_\w+_HOSTS|VK_TASK_NAME)[\"']?\s*[=:]\s*[\"']?({_HOST})"),
        ("node", rf"(?i)\b(?:on|from|of|to|at)[ \t]+(?:the[ \t]+)?(?:node|host|machine|server)[ \t:]+[\"'`]?({_HOST})"),
        ("node", rf"(?i)\b(?:worker|node|host|server|machine|peer)[ \t:]+[\"'`]?({_HOST})[\"'`]?[ \t]+(?:{_FATES})\b"),
        ("node", rf"(?i)\bnode[ \t]+name[ \t]*[=:][ \t]*({_HOST})"),
        # listings and logs of the system
        ("who", rf"(?i)\b(?:of|for|invalid|by) user ({_NAME})\b"),
        ("user", rf"\bsudo: +({_NAME}) : "),
        ("user", rf"\bAccepted \w+ for ({_NAME}) from\b"),
        ("who", rf"(?:^|[\s;&|])su (?:-l? )?({_NAME})(?:\s|$)"),
        ("user group", rf"\bchown(?:[ \t]+-\S+)*[ \t]+({_NAME}):({_NAME})"),
        ("who", rf"\bchown(?:[ \t]+-\S+)*[ \t]+({_NAME})(?:[ \t:]|$)"),
        ("group", rf"\bchgrp(?:[ \t]+-\S+)*[ \t]+({_NAME})[ \t]"),
        ("group user", rf"\busermod[ \t]+-aG[ \t]+({_NAME})[ \t]+({_NAME})"),
        ("who", rf"\b(?:useradd|adduser|userdel|usermod|passwd|chage)[ \t]+(?:-\S+[ \t]+)*({_NAME})(?:\s|$)"),
        ("who", rf"(?i)\b(?:owner|owned[ _]by|run[ _]as|submitted[ _]by|job[ _]user|\w+_user)[\"']?[ \t]*[=:][ \t]*[\"']?({_NAME})"),
        ("who", rf"\bcurl\b[^\n]*?[ \t](?:-u|--user)[ \t=]*[\"']?({_NAME}):"),
        ("user", rf"(?m)^({_NAME})\+?[ \t]+\d+[ \t]+\d+\.\d[ \t]+\d+\.\d[ \t]+\d+[ \t]+\d+[ \t]"),  # ps aux
        ("user", rf"(?m)^({_NAME})\+?[ \t]+\d+[ \t]+\d+[ \t]+\d+[ \t]+\S+[ \t]+\S+[ \t]+\d\d:\d\d:\d\d[ \t]"),  # ps -ef
        ("user", rf"(?m)^[ \t]*\d+[ \t]+({_NAME})\+?[ \t]+(?:\d+|rt)[ \t]+-?\d+[ \t]+\S+[ \t]+\S+[ \t]+\S+[ \t]+[RSDZTI][ \t]"),  # top
        ("user", rf"(?m)^({_NAME})[ \t]+(?:pts/\d+|tty\d+)[ \t]"),  # who, w, last
        ("user", rf"(?:^|[ \t])({_NAME})[ \t]+\d+[ \t]+F[.cer]{{1,4}}m?[ \t]"),  # fuser -v
        ("user", rf"(?m)^\S+[ \t]+\d+[ \t]+(?:\d+[ \t]+)?({_NAME})[ \t]+\S+[ \t]+(?:CHR|REG|DIR|FIFO|unix|IPv\d)[ \t]"),  # lsof
        ("user", rf"(?m)^({_NAME}):[x*!]:\d+:\d+:"),  # passwd
        ("group", rf"(?m)^({_NAME}):[x*!]:\d+:"),  # group
        ("group", rf"\bgid=\d+\(({_NAME})\)"),
        ("user", rf"(?:^|[\s,，;；:：、(（])({_HAN}{{2,4}})[ \t]*[(（/,，]?[ \t]*{STAFF}\b"),
        ("staff", rf"\b({STAFF})\b"),
        ("member", rf"(?:^|[\s\"'=:(,])/data\d{{0,2}}/({_NAME})/"),
        ("member", rf"/(?:nfs|share|shared|nas|sfs)/(?:homes?|users?)/({_NAME})"),
    )
)  # fmt: skip
LISTS: tuple[tuple[str, Any, Any], ...] = tuple(  # where several names of a kind stand: group 1, and how each of them is found in it
    (kind, re2.compile(pattern), re2.compile(each))
    for kind, pattern, each in (
        ("group", r"(?:\bgroups|用户组|组)=((?:\d+(?:\([^()\s]*\))?,?)+)", r"\(([^()\s]+)\)"),
        ("group", r"(?m)^groups = ([^\n]+)$", r"(\S+)"),
        ("host", r"(?i)\b\w*node_?list\\?[\"']?[ \t]*[=:]?[ \t]*\\?[\"']?([A-Za-z][A-Za-z0-9_.,-]*\d[A-Za-z0-9_.,-]*)", r"([^,\s]+)"),
        (
            "host",
            r"(?i)(?:\bhosts?[ \t]*[=:][ \t]*|[ \t]--?(?:H|host|hosts|nodelist|w|include)[ \t=]+)"
            r"[\"']?([A-Za-z][\w.-]*(?::\d+)?(?:,[A-Za-z][\w.-]*(?::\d+)?)+)",
            r"([A-Za-z][\w.-]*)",
        ),
    )
)  # fmt: skip
# gz-npu[07-09,12]: slurm's way to write several hosts
RANGE = re2.compile(
    r"(?i)(\b(?:\w*node_?list|node|nodes|hosts?|-w)\\?[\"']?(?:[ \t]*[=:][ \t]*|[ \t]+)\\?[\"']?(?:[A-Za-z0-9_.-]+,)*)"
    r"([A-Za-z][A-Za-z0-9_.-]*)\[(\d[\d,-]*)\]"
)
MOST_OF_RANGE = 512


def hosts_of_range(stem: str, numbers: str) -> tuple[str, ...]:
    """The names that slurm writes as one; the stem alone where they are too many.

    >>> hosts_of_range("npu", "07-09,12")
    ('npu07', 'npu08', 'npu09', 'npu12')
    """
    names: list[str] = []
    for part in filter(None, numbers.split(",")):
        low, _, high = part.partition("-")
        high = high or low
        if not (low.isdigit() and high.isdigit()) or int(high) - int(low) + len(names) > MOST_OF_RANGE:
            return (stem,)
        names += [f"{stem}{n:0{len(low)}d}" for n in range(int(low), int(high) + 1)]
    return tuple(names) or (stem,)


SHELL_COMMANDS = re2.compile(r"(?m)^\$ hostname(?: -f)?\n(\S+)$")


# Suffixes that no module path, file or attribute has; behind `//` or `git@`, or before a port, any name with points is a host.
_SUFFIXES = "com|cn|edu|gov|corp|lan|intranet"
_LABELS = r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?"
_REACHED = "ping6?|ssh|telnet|nc|scp|curl|wget|nslookup|dig|traceroute|MASTER_ADDR|addr|address|host|server|endpoint|peer"
DOTTED = re2.compile(
    rf"(?:\b(?:{_REACHED})[ \t=:]{{1,3}}((?:{_LABELS}\.)+(?:net|org|io|ai|tech|cloud|dev|top|xyz|info|internal|local)))(?:[^A-Za-z0-9_(-]|$)|"
    rf"(?:://|\bgit@)((?:{_LABELS}\.)+[A-Za-z][A-Za-z0-9-]*)|"
    rf"\b((?:{_LABELS}\.)+(?:{_SUFFIXES}|(?:internal|local|net|org|io|ai|tech|cloud|dev|top|xyz|info):\d{{2,5}}))(?:[^A-Za-z0-9_(.-]|\.?$|\.\s)"
)
_KNOWN = """github.com githubusercontent.com gitee.com gitcode.com gitcode.net gitlab.com hiascend.com huawei.com huaweicloud.com
myhuaweicloud.com mindspore.cn huggingface.co hf-mirror.com hf.co modelscope.cn modelscope.ai modelscope.com pypi.org
pythonhosted.org python.org pytorch.org quay.io docker.io docker.com tsinghua.edu.cn ustc.edu.cn aliyun.com aliyuncs.com
tencent.com sjtu.edu.cn bfsu.edu.cn douban.com openeuler.org openeuler.openatom.cn kylinos.cn ubuntu.com debian.org centos.org
anaconda.com anaconda.org conda.io readthedocs.io readthedocs.org vllm.ai numpy.org google.com googleapis.com microsoft.com
nvidia.com openai.com wandb.ai slack.com feishu.cn dingtalk.com qq.com daocloud.io daocloud.com ghcr.io k8s.io gcr.io
kubernetes.io example.com example.org example.net kernel.org gnu.org paddlepaddle.org.cn paddlepaddle.org openi.org.cn apache.org
stackoverflow.com csdn.net cnblogs.com zhihu.com baidu.com bcebos.com gloo.ai onnx.ai onnxruntime.ai tensorflow.org atomgit.com
openatom.cn opengauss.org openmind.cn modelers.cn volcano.sh localhost.localdomain cluster.local"""
_PUBLIC = frozenset(_KNOWN.split())


def is_public(host: str) -> bool:
    """A name that anybody may know: a project's site, a mirror, a registry.

    >>> is_public("mirrors.tuna.tsinghua.edu.cn"), is_public("gitlab.corp.com")
    (True, False)
    """
    parts = host.lower().split(".")
    return any(".".join(parts[-n:]) in _PUBLIC for n in (2, 3))


_OF_ALL = """qwen|llama|deepseek|glm|chatglm|baichuan|bert|gpt|mixtral|internlm|yi|data|dataset|model|weight|ckpt|checkpoint|tmp|temp|cache|log|code|project
|work|soft|conda|miniconda|anaconda|ascend|cann|image|docker|public|common|share|train|infer|test|home|user|package|lib|bin|k8s"""
_FOLDERS = re.compile(rf"(?i)(?:{_OF_ALL.replace(chr(10), '')})s?(?:[\d._-].*)?$")


def is_person(folder: str) -> bool:
    """A folder of a share that is somebody's, not of models or data."""
    return not _FOLDERS.match(folder) and not common(folder) and "." not in folder


@cache
def _chinese() -> str:
    return "\n".join(text for rule in load_rules() for t in rule.texts.values() for text in (t.what, *t.fix))


@cache
def _vocabulary() -> frozenset[str]:
    """Words of the field: a user called `data` must not change every line that speaks of data."""
    words: set[str] = set(_WORDS.split())
    for rule in load_rules():
        for text in (*rule.match, *rule.also, *rule.without, *rule.examples, *(t.what for t in rule.texts.values())):
            words.update(re.findall(r"[a-z0-9]{2,}", text.lower()))
    return frozenset(words)


def is_machine(name: str) -> bool:
    """A word that can only be the name of a machine: it has a number, and a part that is no word of the field.

    >>> [is_machine(name) for name in ("trainbox03", "rank0", "worker-1", "timeout", "gz-ascend-alpha07")]
    [True, False, False, False, True]
    """
    stem = name.partition(".")[0]
    if not stem[:1].isalpha() or not any(c.isdigit() for c in stem) or re.search(r"\.(?:py|cc|cpp|h|so|log|json|txt)\b", name):
        return False
    return any(len(word) >= 3 and not common(word) for word in re.findall(r"[A-Za-z]+", stem))


def common(name: str) -> bool:
    """Is a name also a word of the field?  Then it is replaced only where it stands as a name."""
    if not name.isascii():
        return name in _chinese()
    return len(name) < 3 or name.lower() in _vocabulary()
