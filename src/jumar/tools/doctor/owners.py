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
git shared public none null unknown self"""
KEPT = frozenset(_ACCOUNTS.split())  # accounts that every machine of the kind has, and names of no machine
_WORDS = "ubuntu debian centos euler openeuler kylin user admin test work data model server worker master npu gpu ai dev lab"
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"
_HAN = r"[\x{4e00}-\x{9fff}]"
_HOST = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}"
PLACES: tuple[tuple[str, Any], ...] = tuple(  # where a name of a kind stands: group 1, and 2 where the second kind is named
    (kind, re2.compile(pattern))
    for kind, pattern in (
        ("user host", rf"({_NAME})@({_HOST})(?::\s?|\s)[^\s\]#$]{{0,200}}\]?\s?[#$](?:\s|$)"),
        ("user", r"(?:/home|/Users|\\Users\\|[A-Z]:/Users)[/\\]*([^\s/\\:;,\"'<>|*()\[\]{}=]+)"),
        ("user", rf"(?:\buid|用户id)=\d+\(({_NAME})\)"),
        ("user", rf"\b(?:USER|LOGNAME|USERNAME|SUDO_USER|NB_USER)[\"']?\s*[=:]\s*[\"']?({_NAME})"),
        ("user", rf"(?i)\b(?:logged in as|login name|user ?name)[\"']?\s*[=:]\s*[\"']?({_NAME})"),
        ("user", rf"\b[Uu]ser[\"']?[ \t]*[:=：][ \t]*[\"']?({_NAME})[\"']?(?:[\s,，;；。、]|$)"),
        ("user", rf"(?:用户名?|姓名|账号|帐号|联系人|负责人)[ \t]*[:=：为是][ \t]*({_HAN}{{2,4}}|{_NAME})(?:[\s,，;；。、)）]|$)"),
        ("user", rf"(?:姓名|联系人|负责人)[ \t]+({_HAN}{{2,4}})(?:[\s,，;；。、)）]|$)"),
        ("user", rf"(?i)\blogged in as:? {_NAME} \(({_NAME})\)"),
        ("staff", r"(?:工号|员工号|employee (?:id|no)\.?)[ \t]*[:=：]?[ \t]*([A-Za-z]{0,3}\d{4,12})"),
        ("user", rf"/users/({_NAME})(?:[/\s\"',;:)]|$)"),
        ("member", rf"/(?:data|mnt|nas|nfs|share|shared|disk\d{{0,2}}|cache|sfs|obs)/(?:nas|nfs|share|homes?|people|staff|workspace)/({_NAME})"),
        ("member", rf"(?:^|[\s\"'=:(,])/(?:nas|nfs|share|homes)/({_NAME})"),
        ("user", rf"(?m)^\s*[bcdlps-][rwxsStT-]{{9}}[.+@]?\s+\d+\s+({_NAME})\s"),
        ("host", rf"(?m)^Linux ({_HOST}) \d+\.\d+\.\d"),
        ("host", rf"\b(?:HOSTNAME|HOST|NODE_NAME|MY_NODE_NAME|SLURMD_NODENAME|NODENAME)[\"']?\s*[=:]\s*[\"']?({_HOST})"),
        ("host", rf"(?i)\b(?:host_?name|node_?name)[\"']?\s*(?:[=:]|is)\s*[\"']?({_HOST})"),
        ("host", rf"(?m)^(?:[A-Z][a-z]{{2}}\s+\d{{1,2}}|\d{{4}}-\d\d-\d\d)[ T]\d\d:\d\d:\d\d\S*\s+({_HOST})\s+(?:kernel|systemd|dockerd|kubelet)\b"),
        ("host", rf"(?m)^\s*(?:\d{{1,3}}\.){{3}}\d{{1,3}}[ \t]+({_HOST})[ \t]*$"),
        ("host", rf"\bHost:[ \t]+({_HOST})(?:[\s(,;]|$)"),
        ("host", rf"(?m)^({_HOST})[ \t]+slots=\d"),
        ("host", rf"(?m)^({_HOST}):/\S* /\S* (?:nfs|ceph|lustre|cifs|fuse)"),
        ("host", rf"\b({_HOST}\.(?:corp|internal|intranet|lan|local))[:/]\d*"),
        ("host", r"\b(ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3})\b"),
    )
)  # fmt: skip
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


def common(name: str) -> bool:
    """Is a name also a word of the field?  Then it is replaced only where it stands as a name."""
    if not name.isascii():
        return name in _chinese()
    return len(name) < 3 or name.lower() in _vocabulary()
