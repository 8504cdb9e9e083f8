"""Takes from texts what tells whose machine it was: names, addresses, secrets, serial numbers; each the same everywhere, so that two ranks stay two.

In: the texts of one collection.  Out: the same texts, line for line, with stand-ins, and how many of each kind there were; for collect.py.
Codes, times, versions and the lines' form stay, so that the verdict stays.  Every pattern is RE2's: linear in the text.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import re2

from jumar.tools.doctor.owners import (
    DOTTED,
    KEPT,
    LISTS,
    PLACES,
    RANGE,
    SHELL_COMMANDS,
    STAFF,
    common,
    hosts_of_range,
    is_machine,
    is_person,
    is_public,
)
from jumar.tools.doctor.secrets import SECRETS, Taken, is_secret_name, is_secret_value

_NETS = ("192.0.2", "198.51.100", "203.0.113")  # RFC 5737; further ones from RFC 2544's 198.18.0.0/15
_LEARNT_SECRET = 8  # characters from which on a secret is looked for everywhere else, too

_PROXY = re2.compile(r"(?i)\b((?:https?|all|ftp|socks)_proxy)(\s*[=:]\s*[\"']?)([a-z0-9]+://)?([^\s\"'/]+)")
_NO_PROXY = re2.compile(r"(?i)\b(no_proxy)(\s*[=:]\s*[\"']?)([^\s\"']+)")
_USERINFO = re2.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)([^\s/\"'<>]*)@")
_MAIL = re2.compile(r"[A-Za-z0-9_.+%-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,24}\b")
_UUID = re2.compile(r"\b[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}\b")
_MAC = re2.compile(r"\b[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5,}\b|\b[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5}\b")
_IPV6 = re2.compile(r"[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]*")
_KERNEL_IP = re2.compile(r"\b([0-9A-F]{32}|[0-9A-F]{8}):[0-9A-F]{4}\b")  # /proc/net/tcp: little-endian words
_IPV4 = re2.compile(r"\d+(?:\.\d+){3,}")
_SERIAL = re2.compile(
    r"(?i:\bserial(?:[ _-]?(?:number|num|no|id|sn))?\b\.?|序列号|条码|\bbar ?code\b"
    r"|\b[vn]?die[ _]?id\b|\blicen[cs]e[ _-]?(?:key|number|num|no|code|id|sn|serial)\b\.?|\bchassis[ _]?id\b)"
    r"\s*[\"']?\s*[:=：]\s*[\"']?([^\n|\"',;]+)|\b(?:SN|ESN)\s*[:=：]\s*([^\n|\"',;\s]+)"
)
_BARE_SERIAL = re2.compile(r"\b21\d{2}[0-9]{2}[0-9A-Z]{6}[A-Z][0-9A-Z]{7}\b|\b2102\d{2}[0-9A-Z]{14}\b")  # of Huawei's boards: 20 characters
_MOBILE = r"\b(1[3-9]\d{9})\b"  # alone it may be a size in bytes: something of a person must stand beside it
_PHONE = re2.compile(
    rf"\b{STAFF}\b[^\n]{{0,20}}?{_MOBILE}|{_MOBILE}[^\n]{{0,12}}?\b{STAFF}\b|[\w.+-]+@[\w-]+\.[\w.-]+[^\n]{{0,20}}?{_MOBILE}|"
    rf"{_MOBILE}[ \t,，;]*[\w.+-]+@|\b(?:mail|call|contact|sms|cell)\b[^\n]{{0,12}}?{_MOBILE}|{_MOBILE}[ \t]*[(（][\x{{4e00}}-\x{{9fff}}]{{2,4}}|"
    r"(?i)(\+86[ -]?1[3-9]\d[ -]?\d{4}[ -]?\d{4})\b|(?:电话|手机号?"
    r"|\btel\b|\bphone\b|\bmobile\b|联系|微信|wechat)[^\n]{0,20}?\b(\d{3,4}[ -]?\d{4}[ -]?\d{3,4})\b|\b(1[3-9]\d[ -]\d{4}[ -]\d{4})\b"
)
_PERSON = re2.compile(r"\b[1-9]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[0-9Xx]\b")  # an identity card's number
_REPOSITORY = re2.compile(
    r"((?:https?|ssh|git)://(?:[^\s/@\"']*@)?|git@|\b)((?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,})((?::\d+)?[/:])([^\s\"'<>:]+?)(\.git)\b"
)
_REMOTE = re2.compile(  # of git's own lines, and a run's page
    r"((?m:^\s*(?:From|To)[ \t]+|\b(?:clone|origin|submodule|upstream)\b[^\n:]{0,40}?)https?://)((?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}(?::\d+)?/)([^\s\"'<>:]+)"
    r"|(https?://)(wandb\.ai/|swanlab\.cn/@?)([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)"
    r"|((?:https?|ssh|git)://SECRET-\d+@)([A-Za-z0-9.-]+)((?::\d+)?)/([^\s\"'<>:/]+/[^\s\"'<>:/]+)"
    r"|(https?://)([A-Za-z0-9.-]+)((?::\d+)?)/([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)/runs/"
)
_IMAGE = re2.compile(r"(^|[\s\"'=])((?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}(?::\d+)?)/([a-z0-9][a-z0-9._/-]*)(:[\w.-]+|@sha256)")
_TENANTS = re.compile(r"myhuaweicloud\.com|aliyuncs\.com|ccr\.ccs\.tencentyun\.com")  # public registries whose first folder is a customer's
_CONTAINER = re.compile(r"[0-9a-f]{12}")  # the id that Docker gives as a name: it names nobody, and says that this is a container
_NUMBERED = re.compile(r"(?P<stem>.*\D)\d{1,5}$")
_VERSION_BEFORE = re.compile(  # at the end of what stands before a number
    r"(?:(?:version|ver|release|driver|firmware|npu-?smi|cann|hdk|toolkit|package|product|kernel|software|hal|_drv|_fw|build|runtime|mcu|bios|版本|驱动|固件)"
    r"(?:[ _-]?(?:version|ver|is|of|number|info|to|from))*[ \t\"'`=:：\[(<>~v|-]{0,40}"
    r")$",
    re.IGNORECASE,
)
_CHAIN = re.compile(r"(\d+(?:\.\d+){3})\S{0,3}[ \t\"'`]*(?:->|=>|→|/|,|and|or|to|vs\.?)[ \t\"'`]*$")  # another version, an arrow
_KERNEL_BEFORE = re.compile(r"\d\.\d{1,3}\.\d{1,3}-$")  # 5.10.0-60.18.0.50
_OF_DRIVER = re.compile(r"2[1-6]\.[0-5]\.\d\.\d{1,2}")  # what releases of the driver look like
_ADDRESS_BEFORE = re.compile(r"(?:ip|addr\w*|host|peer|server|node|from|to|connect\w*|//|@)[\s\"'`:=\[(<]{0,4}$", re.IGNORECASE)
_FILE_AROUND = re.compile(r"linux|aarch64|x86_64|\.run\b|\.rpm\b|\.deb\b|\.whl\b|\.oe\d|\.el\d|==", re.IGNORECASE)


@dataclass
class Neutral:
    """The stand-ins of one collection; mutable, since it grows with each text.   Call `learn` on every text, then `text` on each.

    counts: distinct values that were replaced, by kind.

    >>> one = Neutral()
    >>> one.learn("[li@node7 ~]$ ls /home/li")
    >>> one.text("node7: connect to 10.1.1.8 of 10.1.1.9 failed, token=abcd1234")
    'host1: connect to 192.0.2.1 of 192.0.2.2 failed, token=SECRET-1'
    """

    given: dict[str, dict[str, str]] = field(default_factory=dict)
    versions: set[str] = field(default_factory=set)
    used: dict[str, int] = field(default_factory=dict)
    literal: Any = None

    def learn(self, text: str) -> None:
        """Names, secrets and versions that this text tells, to be known in every other."""
        self.literal = None
        text = text.encode("utf-8", "replace").decode()
        for kinds, pattern in PLACES:
            for found in pattern.finditer(text):
                for group, kind in enumerate(kinds.split(), 1):
                    self._name(kind, found[group])
        for kind, pattern, each in LISTS:
            for found in pattern.finditer(text):
                for one in each.finditer(found[1]):
                    self._name(kind, one[1])
        for found in RANGE.finditer(text):
            self._range(found)
        for found in _PHONE.finditer(text):
            self._phone(found)
        for found in SHELL_COMMANDS.finditer(text):
            self._name("host", found[1])
        for taken in _taken(text):
            if len(taken.value) >= _LEARNT_SECRET:
                self._stand_in("secret", taken.value)
        for found in _IPV4.finditer(text):
            if self._is_version(found[0], text, found.start(), found.end()):
                self.versions.add(found[0])

    def add(self, users: Iterable[str] = (), hosts: Iterable[str] = ()) -> None:
        """Names that are known from elsewhere."""
        self.literal = None
        for kind, names in (("user", users), ("host", hosts)):
            for name in names:
                self._name(kind, name)

    def text(self, text: str) -> str:
        """The text with stand-ins; as many lines as before."""
        text = self.secretless(text)
        text = _sub(_PROXY, text, lambda m: f"{m[1]}{m[2]}{m[3] or ''}{self._proxy(m[4])}")
        text = _sub(_NO_PROXY, text, lambda m: f"{m[1]}{m[2]}{self._stand_in('proxy', m[3], 'HIDDEN')}")
        text = _sub(RANGE, text, self._range)
        for kind, pattern, each in LISTS:
            text = _sub(pattern, text, partial(self._list, kind, each))
        for kinds, pattern in PLACES:
            text = _sub_groups(pattern, text, kinds.split(), self._name)
        text = _sub(SHELL_COMMANDS, text, lambda m: m[0].replace(m[1], self._name("host", m[1])))
        text = self._literals(text)
        text = _sub(_MAIL, text, self._mail)
        text = _sub(_REPOSITORY, text, self._repository)
        text = _sub(_REMOTE, text, self._remote)
        text = _sub(_IMAGE, text, self._image)
        text = _sub(DOTTED, text, self._dotted)
        text = _sub(_SERIAL, text, self._serial)
        text = _sub(_BARE_SERIAL, text, lambda m: self._stand_in("serial", m[0]))
        text = _sub(_PERSON, text, lambda m: self._stand_in("person", m[0]) if _checks(m[0]) else str(m[0]))
        text = _sub(_PHONE, text, self._phone)
        text = _sub(_UUID, text, lambda m: self._stand_in("uuid", m[0].lower(), "00000000-0000-4000-8000-{:012d}"))
        text = _sub(_MAC, text, self._mac)
        text = _sub(_KERNEL_IP, text, self._kernel_ip)
        text = _sub(_IPV6, text, self._ipv6)
        return _sub(_IPV4, text, self._ipv4)

    @property
    def counts(self) -> dict[str, int]:
        return {kind: len(values) for kind, values in sorted(self.given.items()) if values and kind != "net"}

    # -------------------------------------------------------------------------------- stand-ins

    def _stand_in(self, kind: str, value: str, form: str = "") -> str:
        known = self.given.setdefault(kind, {})
        if value not in known:
            known[value] = (form or _FORMS[kind]).format(len(known) + 1)
        return known[value]

    def _name(self, kind: str, name: str) -> str:
        """The stand-in of a user or a host; a name that everybody has stays."""
        name = name.rstrip(".")
        if kind == "member":
            if not is_person(name):
                return name
            kind = "user"
        if kind == "node":
            if not is_machine(name):
                return name
            kind = "host"
        if kind == "who":
            if common(name):
                return name
            kind = "user"
        if kind == "host" and (_CONTAINER.fullmatch(name) or is_public(name)):
            return name
        if kind == "group" and name in self.given.get("user", {}):
            kind = "user"
        if kind == "staff":
            return self._stand_in(kind, name)
        if name in KEPT or not name or name.isdigit() or _IPV4.fullmatch(name) or self._is_given(kind, name):
            return name
        if kind == "host" and "." in name and not name.startswith("."):
            first = name.split(".")[0]
            return f"{self._name(kind, first)}.example.org" if first and not first.isdigit() else self._stand_in(kind, name)
        return self._stand_in(kind, name)

    def _is_given(self, kind: str, name: str) -> bool:
        """It is a stand-in already; a group's may be its user's."""
        kinds = (kind, "user") if kind == "group" else (kind,)
        return any(name in self.given.get(k, {}).values() for k in kinds) or (kind == "host" and name.endswith(".example.org"))

    def _list(self, kind: str, each: Any, m: Any) -> str:
        return str(m[0]).replace(m[1], _sub_groups(each, m[1], [kind], self._name), 1)

    def _range(self, m: Any) -> str:
        """Slurm's `npu[07-09]` as three names: the form of one has no stand-in."""
        return f"{m[1]}{','.join(self._name('host', name) for name in hosts_of_range(m[2], m[3]))}"

    def secretless(self, text: str) -> str:
        """The text with stand-ins for secrets alone."""
        text = text.encode("utf-8", "replace").decode()
        pieces: list[str] = []
        end = 0
        for taken in sorted(_taken(text), key=lambda t: (t.start, -len(t.value))):
            if taken.start < end:
                continue
            lines = taken.value.count("\n")
            pieces += [text[end : taken.start], self._stand_in("secret", taken.value), "\n" * lines]
            end = taken.start + len(taken.value)
        text = "".join([*pieces, text[end:]])
        return _sub(_USERINFO, text, self._userinfo)

    def _literals(self, text: str) -> str:
        """Names and secrets that were learnt, wherever they stand as a word."""
        if self.literal is None:
            known: dict[str, str] = {}
            for kind in ("secret", "host", "user", "group", "staff", "phone"):
                for value, stand_in in self.given.get(kind, {}).items():
                    if "\n" not in value and (len(value) >= _LEARNT_SECRET if kind == "secret" else not common(value)):
                        known.setdefault(value, stand_in)
            longest_first = sorted(known, key=len, reverse=True)
            siblings = [f"{re2.escape(stem)}\\d{{{least},5}}" for stem, least in _stems(self.given.get("host", {}))]
            either = "|".join([*siblings, *map(re2.escape, longest_first)])
            self.literal = (known, re2.compile(either)) if either else ({}, None)
        known, pattern = self.literal
        if pattern is None:
            return text

        def whole(m: Any) -> str:
            inside = (m[0][0].isalnum() and _alnum(text, m.start() - 1)) or (m[0][-1].isalnum() and _alnum(text, m.end()))
            if m[0] not in known:  # gpu-node-18, where gpu-node-17 is known
                return str(m[0]) if inside or m[0] in self.given["host"].values() else self._stand_in("host", m[0])
            return str(m[0]) if inside and not known[m[0]].startswith("SECRET-") else known[str(m[0])]

        return _sub(pattern, text, whole)

    def _userinfo(self, m: Any) -> str:
        if not m[2] or m[2] == "git":
            return str(m[0])
        return f"{m[1]}{self._stand_in('secret', m[2])}@"

    def _dotted(self, m: Any) -> str:
        host = m[1] or m[2] or m[3]
        return str(m[0]).replace(host, self._domain(host), 1)

    def _domain(self, host: str) -> str:
        """The stand-in of a name with points; those of public places stay."""
        if (
            is_public(host.partition(":")[0])
            or host in self.given.get("host", {}).values()
            or (first := host.partition(".")[0]).startswith("SECRET-")
        ):
            return host
        known = self.given.get("host", {})
        if first in known or first in known.values():
            return f"{known.get(first, first)}.example.org" + "".join(host.partition(":")[1:])
        return self._stand_in("domain", host.partition(":")[0]) + "".join(host.partition(":")[1:])

    def _repository(self, m: Any) -> str:
        if is_public(m[2]) and "SECRET-" not in m[1]:
            return str(m[0])
        return f"{m[1]}{self._domain(m[2])}{m[3]}{self._stand_in('project', m[4])}{m[5]}"

    def _remote(self, m: Any) -> str:
        if m[5]:
            return f"{m[4]}{m[5]}{self._project(m[6])}"
        if m[7]:
            return f"{m[7]}{self._domain(m[8])}{m[9]}/{self._project(m[10])}"
        if m[11]:
            return f"{m[11]}{self._domain(m[12])}{m[13]}/{self._project(m[14])}/runs/"
        return str(m[0]) if is_public(m[2].strip("/").partition(":")[0]) or m[3].startswith("team/project") else self._whole_remote(m)

    def _project(self, path: str) -> str:
        return path if path.startswith("team/project") else self._stand_in("project", path)

    def _image(self, m: Any) -> str:
        """The path of an image: its words of the field stay (`ascend`, `mindie`), and its tag, which tells versions."""
        if not (m[2].startswith("site") or _TENANTS.search(m[2]) or not is_public(m[2].partition(":")[0])):
            return str(m[0])
        parts = [part if _of_field(part) else self._stand_in("image", part) for part in m[3].split("/")]
        return f"{m[1]}{self._domain(m[2])}/{'/'.join(parts)}{m[4]}"

    def _whole_remote(self, m: Any) -> str:
        host, colon, port = m[2].strip("/").partition(":")
        return f"{m[1]}{self._domain(host)}{colon}{port}/{self._stand_in('project', m[3])}"

    def _phone(self, m: Any) -> str:
        number = next(filter(None, m.groups()))
        return str(m[0]).replace(number, self._stand_in("phone", number), 1)

    def _proxy(self, address: str) -> str:
        host, _, port = address.rpartition(":")
        self._stand_in("proxy", address)
        return f"proxy.example.org:{port}" if host and port.isdigit() else "proxy.example.org"

    def _mail(self, m: Any) -> str:
        if m[0].startswith(("git@", "SECRET-")) or m[0].endswith("@example.org"):
            return str(m[0])
        return self._stand_in("mail", m[0])

    def _serial(self, m: Any) -> str:
        group = 1 if m[1] is not None else 2
        value = m[group].strip()
        if (
            len(value) < 6
            or sum(c.isdigit() for c in value) < 3
            or not value.strip("0 -")
            or value.lower() in ("na", "n/a", "none", "unknown")
        ):
            return str(m[0])
        return str(m[0]).replace(value, self._stand_in("licence" if re.match(r"(?i)licen", m[0]) else "serial", value), 1)

    def _mac(self, m: Any) -> str:
        parts = re.split("[:-]", m[0])
        if set(parts) == {"00"} or set(parts) == {"ff"} or set(parts) == {"FF"} or ("-" in m[0] and _is_time(parts)):
            return str(m[0])
        if len(parts) > 6:  # a fingerprint
            return self._stand_in("secret", m[0])
        return self._stand_in("mac", ":".join(parts).lower(), "02:00:00:00:00:{:02x}" if len(self.given.get("mac", {})) < 255 else "")

    def _kernel_ip(self, m: Any) -> str:
        raw = m[1]
        words = [raw[i : i + 8] for i in range(0, len(raw), 8)]
        packed = b"".join(bytes.fromhex(w)[::-1] for w in words)
        if len(packed) == 4:
            new = ipaddress.IPv4Address(self._address(str(ipaddress.IPv4Address(packed)))).packed
        else:
            new = ipaddress.IPv6Address(self._long_address(ipaddress.IPv6Address(packed))).packed
        return "".join(new[i : i + 4][::-1].hex().upper() for i in range(0, len(new), 4)) + str(m[0])[len(raw) :]

    def _ipv6(self, m: Any) -> str:
        text: str = m.string
        token = m[0].rstrip(".")
        trailing = m[0][len(token) :]
        if token.endswith(":") and not token.endswith("::"):
            token, trailing = token[:-1], ":" + trailing
        if (
            len(token) > 45
            or _alnum(text, m.start() - 1)
            or (m.start() and text[m.start() - 1] in ":_.")
            or _alnum(text, m.start() + len(token))
        ):
            return str(m[0])
        try:
            address = ipaddress.IPv6Address(token)
        except ValueError:
            return str(m[0])
        if token.count(":") < 4 and not re.match(r"(?i)[0-9a-f]{3,4}:|::ffff:", token):  # abc::def is a name of C++, x[0::2] a slice
            return str(m[0])
        return self._long_address(address, token) + str(trailing)

    def _long_address(self, address: ipaddress.IPv6Address, token: str = "") -> str:
        if address.is_loopback or address.is_unspecified or address.is_multicast:
            return token or str(address)
        if address.ipv4_mapped:
            return f"::ffff:{self._address(str(address.ipv4_mapped))}"
        return self._stand_in("ipv6", str(address))

    def _ipv4(self, m: Any) -> str:
        text: str = m.string
        value = m[0]
        before = text[max(0, m.start() - 80) : m.start()]
        if (
            value.count(".") != 3
            or before.endswith((".", "v", "V"))
            or (not _private(value) and (_alnum(text, m.start() - 1) or _letter(text, m.end())))
        ):
            return str(value)
        if self._is_version(value, text, m.start(), m.end()) or (_in_file_name(text, m.start(), m.end()) and not _private(value)):
            return str(value)
        return self._address(value)

    def _is_version(self, value: str, text: str, start: int, end: int) -> bool:
        if _private(value) or re.match(r":\d", text[end : end + 2]):
            return False
        before = text[max(0, start - 80) : start]
        earlier = _CHAIN.search(before)
        if _OF_DRIVER.fullmatch(value) and not _ADDRESS_BEFORE.search(before):
            return True
        return (
            value in self.versions
            or bool(_KERNEL_BEFORE.search(before) or _VERSION_BEFORE.search(before))
            or bool(earlier and earlier[1] in self.versions)
        )

    def _address(self, value: str) -> str:
        """The stand-in of an IPv4 address: addresses of one /24 stay together; what is no address of a machine stays."""
        parts = [int(p) if len(p) < 4 else 999 for p in value.split(".")]
        if any(p > 255 for p in parts[:3]) or parts[0] in (0, 127, 255) or 224 <= parts[0] < 240 or value.startswith("255."):
            return value
        known = self.given.setdefault("ipv4", {})
        if value not in known:
            nets = self.given.setdefault("net", {})
            prefix = ".".join(map(str, parts[:3]))
            number = len(nets)
            if prefix not in nets:
                nets[prefix] = _NETS[number] if number < len(_NETS) else f"198.{18 + (number - 3) // 256 % 2}.{(number - 3) % 256}"
            self.used[prefix] = self.used.get(prefix, 0) + (0 < parts[3] < 255)
            known[value] = f"{nets[prefix]}.{self.used[prefix] if 0 < parts[3] < 255 else parts[3]}"
        return known[value]


_FORMS = {
    "user": "user{}",
    "host": "host{}",
    "secret": "SECRET-{}",
    "serial": "SERIAL-{}",
    "licence": "LICENCE-{}",
    "mail": "mail{}@example.org",
    "mac": "02:00:00:00:01:{:x}",
    "ipv6": "2001:db8::{:x}",
    "proxy": "proxy{}.example.org",
    "domain": "site{}.example.org",
    "project": "team/project{}",
    "phone": "PHONE-{}",
    "person": "PERSON-{}",
    "staff": "STAFF-{}",
    "group": "group{}",
    "image": "image{}",
}


Progress = Callable[[int, int], None]  # told what is done, and what all of it is, in characters


def neutralised(
    texts: Mapping[str, str], users: Iterable[str] = (), hosts: Iterable[str] = (), progress: Progress = lambda done, total: None
) -> tuple[dict[str, str], dict[str, int]]:
    """The texts, and their names, with stand-ins, and how many values of each kind were replaced.   users, hosts: known from elsewhere."""
    neutral = Neutral()
    neutral.add(users, hosts)
    done, total = 0, 2 * sum(map(len, texts.values()))  # each is read twice
    for name, text in texts.items():
        neutral.learn(f"{name}\n{text}")
        done += len(text)
        progress(done, total)
    clean: dict[str, str] = {}
    for name, text in texts.items():
        clean[neutral.text(name)] = neutral.text(text)
        done += len(text)
        progress(done, total)
    return clean, neutral.counts


def _taken(text: str) -> Iterable[Taken]:
    for secret in SECRETS:
        for m in secret.pattern.finditer(text):
            group = next((g for g in secret.values if m[g]), 0)
            value = m[group] if group else ""
            named = not secret.name or (is_secret_name(m[secret.name]) and is_secret_value(m[secret.name], value))
            if value.strip() and named and secret.fits(value):
                yield Taken(m.start(group), value)


def _sub(pattern: Any, text: str, stand_in: Callable[[Any], str]) -> str:
    """re2.sub, where nothing is copied if nothing is found."""
    pieces: list[str] = []
    end = 0
    for m in pattern.finditer(text):
        pieces += [text[end : m.start()], stand_in(m)]
        end = m.end()
    return "".join([*pieces, text[end:]]) if pieces else text


def _sub_groups(pattern: Any, text: str, kinds: list[str], stand_in: Callable[[str, str], str]) -> str:
    pieces: list[str] = []
    end = 0
    for m in pattern.finditer(text):
        for group, kind in enumerate(kinds, 1):
            value = m[group]
            trailing = value[len(value.rstrip(".")) :]
            pieces += [text[end : m.start(group)], stand_in(kind, value), trailing if value not in KEPT else ""]
            end = m.end(group)
    return "".join([*pieces, text[end:]]) if pieces else text


def _alnum(text: str, place: int) -> bool:
    return 0 <= place < len(text) and text[place].isascii() and text[place].isalnum()


def _letter(text: str, place: int) -> bool:
    """A letter, or a point with a letter or digit behind it."""
    rest = text[place : place + 2]
    return bool(re.match(r"[A-Za-z_]|\.\w", rest))


def _in_file_name(text: str, start: int, end: int) -> bool:
    """The number is a part of the name of a package or a kernel (`driver_24.1.0.3_linux.run`, `5.10.0-60.18.0.50.oe2203`)."""
    word = re.search(r"\S*$", text[max(0, start - 80) : start])
    after = re.match(r"\S*", text[end : end + 60])
    before = word[0] if word else ""
    return before.endswith(("_", "-", "=")) and bool(_FILE_AROUND.search(before + "#" + (after[0] if after else "")))


def _stems(hosts: Iterable[str]) -> list[tuple[str, int]]:
    """What numbered hosts begin with, and from how many digits on such a name is another of them; a word of the field says nothing."""
    found: dict[str, int] = {}
    for host in hosts:
        numbered = _NUMBERED.match(host)
        stem = numbered["stem"] if numbered else ""
        word = stem.strip("-_.")
        if len(word) >= 3 and "." not in word and not re.match(r"(?i)ascend|atlas|910|310", word):
            if not common(word):
                found[stem] = 1
            elif stem != word and len(host) - len(stem) >= 2:
                found[stem] = 2
    return sorted(found.items(), key=lambda item: -len(item[0]))


def _checks(number: str) -> bool:
    """The check digit of an identity card's number (GB 11643)."""
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(d) * w for d, w in zip(number, weights, strict=False))
    return "10X98765432"[total % 11] == number[-1].upper()


def _of_field(part: str) -> bool:
    """Every word of it is one of the field, or a version, or a stand-in."""
    return all(len(word) < 3 or common(word) for word in re.findall(r"[a-z]+", part)) or bool(re.fullmatch(r"image\d+", part))


def _private(value: str) -> bool:
    return bool(re.match(r"10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.", value))


def _is_time(parts: list[str]) -> bool:
    return all(p.isdigit() for p in parts) and all(int(p) <= top for p, top in zip(parts, (99, 12, 31, 23, 59, 59), strict=False))
