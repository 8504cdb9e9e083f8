"""What a secret looks like: by the name that stands before it, by its own form, by the words around it.

In: nothing.  Out: `SECRETS`, patterns for neutralise.py, and whether a name promises a secret.  Rather one too many than one too few.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import re2


@dataclass(frozen=True)
class Secret:
    """A pattern.   values: the groups of which one is the secret; name: the group that names it, 0 where the form is enough; fits: a last look."""

    pattern: Any
    values: tuple[int, ...] = (1,)
    name: int = 0
    fits: Callable[[str], bool] = bool


@dataclass(frozen=True)
class Taken:
    """A secret that was found.   start: where in the text."""

    start: int
    value: str


_WORDS = r"token|secret|passw|passphrase|pass|credential|key|auth|signature|pat|sig"
_NAMES = rf"([A-Za-z0-9_.-]*(?:{_WORDS})[A-Za-z0-9_.-]*)"
_CAPITALS = rf"([A-Z0-9_]*(?:{_WORDS.upper()})[A-Z0-9_]*)"
_VALUE = r"(?:\\?\"([^\"\n]*)\"|\\?'([^'\n]*)'|\\?[\"']?((?:[^\s\"',:;\[{(=][\"'][A-Za-z0-9]|[^\s\"'])+))"


def _plain(value: str) -> bool:
    """No part of a list or a dictionary, whose other values are no secrets."""
    return "," not in value and "{" not in value


def _mixed(value: str) -> bool:
    """Letters and digits, as random texts have."""
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _random(value: str) -> bool:
    """Letters and at least three digits."""
    return _mixed(value) and sum(c.isdigit() for c in value) >= 3


def _key(value: str) -> bool:
    """No number, size or word: what the halves of an access key look like."""
    return (_mixed(value) or len(value) >= 16) and not re.match(r"[\d.,x*]+[A-Za-z]{0,2}$|[(\[{<$%]|SECRET-", value)


SECRETS: tuple[Secret, ...] = (
    Secret(re2.compile(r"-----BEGIN [A-Z0-9 ]*(?:PRIVATE KEY|CERTIFICATE)[A-Z0-9 ]*-----((?:[^-]|-[^-])*)")),
    Secret(re2.compile(r"(?i)\bauthorization[\"']?[ \t]*[:=][ \t]*\\?[\"']?([^\n\"']+)")),
    Secret(re2.compile(r"(?i)\b(?:set-)?cookie[\"']?[ \t]*[:=][ \t]*\\?[\"']?([^\n\"']{8,})")),
    Secret(re2.compile(r"(?i)\bbearer[ \t]+([^\s\"',;]{4,})")),
    Secret(re2.compile(rf"(?m)^[ \t]*(?:export |declare -x |set )?{_CAPITALS}=[\"']?([^\n]*?)[\"']?[ \t]*$"), (2,), name=1),
    Secret(re2.compile(rf"(?i){_NAMES}=([^\s\"']\S*)"), (2,), name=1, fits=_plain),
    Secret(re2.compile(rf"(?i){_NAMES}\\?[\"']?[ \t]{{0,4}}(?:=>|:=|=|:|：)[ \t]{{0,4}}{_VALUE}"), (2, 3, 4), name=1),
    Secret(re2.compile(rf"(?im)^[ \t]*(?:- )?{_NAMES}[ \t]*[:=][ \t]*([^\s\"']\S*)[ \t]*$"), (2,), name=1),
    Secret(re2.compile(rf"(?i)--?{_NAMES}(?:[ \t]+|=)(?:\"([^\"\n]*)\"|'([^'\n]*)'|[\"']?([^\s\"']\S*))"), (2, 3, 4), name=1),
    Secret(re2.compile(rf"(?i)[\"']--?{_NAMES}[\"']\s*,\s*[\"']([^\"'\n]+)[\"']"), (2,), name=1),
    Secret(re2.compile(r"(?i)[?&][\w-]*(?:token|sig|signature|key|secret|credential|keyid)=([^&\s\"'#]+)")),
    Secret(re2.compile(r"(?i)\b(?:\w+[_-])(?:ak|sk)\\?[\"']?[ \t]*[=:：][ \t]*\\?[\"']?([^\s\"',;&]{4,})"), fits=_key),
    Secret(re2.compile(r"(?i)\b(?:ak|sk)\\?[\"']?[ \t]*[=:：][ \t]*\\?[\"']?([^\s\"',;&]{5,})"), fits=_key),
    *(
        Secret(re2.compile(rf"\b(?:{tools})\b[^\n|;]*?[ \t](?:{option})[\"']?([^\s\"']+)"))
        for tools, option in (  # passwords that follow an option
            ("curl|wget|http|httpie", r"(?:-u|-U|--user|--proxy-user|-a)[ \t=]*[\"']?[^\s:\"']+:"),
            ("mysql|mysqldump|mysqladmin|mysqlimport|mariadb|mycli", r"-p"),
            ("sshpass|plink|pscp|mongo|mongosh|mongodump|mongorestore", r"(?:-p|-pw|--password)[ \t=]*"),
            ("redis-cli", r"(?:-a|--pass)[ \t=]+"),
            ("ldapsearch|ldapmodify|ldapwhoami", r"-w[ \t]*"),
            ("ipmitool|zip|unzip|7z|keytool|snmpwalk", r"(?:-P|-storepass|-keypass)[ \t]+"),
            ("openssl", r"(?:-passin|-passout|-k|-password)[ \t]+(?:pass:)?"),
            ("smbclient|net|rpcclient", r"-U[ \t]*[\"']?[^\s%\"']+%"),
        )
    ),
    Secret(
        re2.compile(
            r"\b(?:docker|podman|nerdctl|isula|crictl|ctr|helm|skopeo|oras|buildah|oc|az|hcloud|npm)\b[^\n|;]*?[ \t]login\b"
            r"[^\n|;]*?[ \t](?:-p|--password)[ \t=]*[\"']?([^\s\"']+)"
        ),
        fits=lambda value: not value.startswith("-"),
    ),
    Secret(
        re2.compile(
            r"\b(?:wandb|swanlab|comet|neptune|clearml|modelscope|huggingface-cli|hf auth|kaggle)[ \t]+login\b[^\n|;]*?[ \t=\"']([A-Za-z0-9_-]{16,})"
        ),
        fits=_mixed,
    ),
    Secret(re2.compile(r"\becho[ \t]+[\"']?([^\s\"'|]+)[\"']?[ \t]*\|[ \t]*(?:sudo[ \t]+-S|su\b|docker[ \t]+login|passwd[ \t]+--stdin)")),
    Secret(re2.compile(r"\becho[ \t]+[\"']?[^\s:\"']+:([^\s\"'|]+)[\"']?[ \t]*\|[ \t]*(?:sudo[ \t]+)?chpasswd")),
    Secret(re2.compile(r"\b((?:hf|api_org)_[A-Za-z0-9]{16,})")),
    Secret(re2.compile(r"\b((?:gh[pousr]|github_pat|npm|dckr_pat)_[A-Za-z0-9_]{10,})")),
    Secret(re2.compile(r"\b(glpat-[A-Za-z0-9_-]{10,})")),
    Secret(re2.compile(r"\b((?:AKIA|ASIA|LTAI|AKID|HPUA)[A-Za-z0-9]{12,})")),
    Secret(re2.compile(r"\b(sk-[A-Za-z0-9_-]{16,})"), fits=_mixed),
    Secret(re2.compile(r"\b(xox[a-z]-[A-Za-z0-9-]{10,})")),
    Secret(re2.compile(r"\b(AIza[A-Za-z0-9_-]{30,})")),
    Secret(re2.compile(r"\b(pypi-[A-Za-z0-9_-]{20,})"), fits=_mixed),
    Secret(re2.compile(r"\b(ms-[0-9a-f]{8}-[0-9a-f-]{10,})")),
    Secret(re2.compile(r"(?:密码|口令|密钥|秘钥|令牌)[ \t]*(?:[:=：]|为|是)[ \t]*[\"']?([!-~]+)")),
    Secret(
        re2.compile(
            r"(?i)\b(?:login|api|access|secret|auth|private|wandb)[ _-]?key[ \t]*[:=：]?[ \t]*(?:is[ \t]+)?[\"']?([A-Za-z0-9_-]{8,})"
        ),
        fits=_mixed,
    ),
    Secret(re2.compile(r"(?i)\b(?:token|令牌)[ \t]+(?:is[ \t]+)?[\"']?([A-Za-z0-9_.-]{12,})"), fits=_random),
    Secret(re2.compile(r"(?i)\b(?:password|passwd|pwd)(?:[ \t]+is)?[ \t]+[\"']?([!-~]{6,})"), fits=_mixed),
    Secret(re2.compile(r"(?i)\bpwd[ \t]*[:：=][ \t]*[\"']?([^\s\"'/]+)(?:[\s\"']|$)"), fits=_mixed),
    Secret(re2.compile(r"hooks\.slack\.com/[a-z]+/([A-Za-z0-9/_-]{8,})")),
    Secret(re2.compile(r"/bot/(?:v\d/)?hook/([A-Za-z0-9-]{8,})")),
    Secret(re2.compile(r"\b(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?)")),
    Secret(re2.compile(r"\b(?:ssh-(?:rsa|ed25519|dss)|ecdsa-[a-z0-9-]+) (AAAA[A-Za-z0-9+/=]+(?: [^\s@]+@\S+)?)")),
)

_SURE_WORDS = """secret secrets password passwords passwd passphrase credential credentials apikey accesskey secretkey privatekey authkey
authorization"""
_SURE = frozenset(_SURE_WORDS.split())
_KEY_WORDS = "api access secret private auth license licence encryption encrypt signing account ssh master client session"
_KEY_OF = frozenset(_KEY_WORDS.split())
_TOKEN_WORDS = "eos bos pad unk sep cls mask next special num max min per n new input output stop image draft first last prompt unexpected"
_NO_TOKEN = frozenset(_TOKEN_WORDS.split())  # those that a model reads
_EMPTY = re.compile(r"(?i)^(?:true|false|none|null|nil|yes|no|on|off|<[^>]*>|\*+|x{3,}|SECRET-\d+|\$\{?\w+\}?)?[,;)\]}]*$")
_NUMBER = re.compile(r"^[\[(]?-?[\d.,:e+-]+[\])%]?[,;)\]}]*$")


def is_secret_name(name: str) -> bool:
    """Does a name promise that its value is a secret?

    >>> [is_secret_name(n) for n in ("HF_TOKEN", "api_key", "dbPassword", "max_tokens", "KeyError", "eos_token", "TOKENIZERS_PARALLELISM", "key")]
    [True, True, True, False, False, False, False, False]
    """
    name = name.strip("-_.")
    parts = {p.lower() for p in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)}
    if "stdin" in parts:  # --password-stdin has no value
        return False
    if parts & _SURE:
        return True
    if "token" in parts:
        return not parts & _NO_TOKEN
    if name.isupper() or re.fullmatch(r"[A-Z0-9_.-]+", name):
        return bool(re.search(r"TOKEN(?!S|IZ)|SECRET|PASSW|CREDENTIAL|KEY(?:$|_|S$|ID)|_PASS$|_AUTH$|_PAT$", name))
    return bool(("key" in parts or "keyid" in parts) and parts & _KEY_OF) or name.lower() in ("auth", "x-auth", "signature")


def is_secret_value(name: str, value: str) -> bool:
    """Not a switch, an empty text or, where the name is a token's, a number."""
    if _EMPTY.match(value.strip()):
        return False
    return not (_NUMBER.match(value.strip()) and re.search(r"(?i)token|key", name))
