"""`hccn_tool` and /etc/hccn.conf as values: link, address, TLS, optics and counters of each NPU's network port, and what is wrong with them.

In: the text of one or many outputs (`$ hccn_tool -i N ...`), of the loop over all devices, or of the configuration file.  Out: `Hccn`, and
complaints of `check_hccn`.  Facts: mind-cluster documentation (FaultDiag, collecting logs), hccl documentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from jumar.device.ascend.complaint import Complaint, loops, plain_lines, quoted


@dataclass(frozen=True)
class Optical:
    """An optical module.   present: None where it is not told; powers in mW; flags: one bit a lane, not zero where the signal is lost."""

    present: bool | None = None
    tx_power_mw: float | None = None
    rx_power_mw: float | None = None
    tx_high_mw: float | None = None
    tx_low_mw: float | None = None
    rx_high_mw: float | None = None
    rx_low_mw: float | None = None
    tx_los: int | None = None
    rx_los: int | None = None
    others: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Tls:
    """TLS of the port: the switch must be the same on all ranks."""

    on: bool
    preset: bool | None = None
    alarm_days: int | None = None


@dataclass(frozen=True)
class LinkChange:
    """The link went up or down.   at: None where the time was not understood."""

    at: datetime | None
    up: bool


@dataclass(frozen=True)
class LinkHistory:
    """`-link_stat`: changes, the latest first, as the tool lists them."""

    now: datetime | None = None
    up_count: int | None = None
    down_count: int | None = None
    changes: tuple[LinkChange, ...] = ()


@dataclass(frozen=True)
class Ping:
    """`-ping`: what came back from an address."""

    address: str = ""
    sent: int = 0
    received: int = 0


@dataclass(frozen=True)
class HccnDevice:
    """The port of one NPU; what was not asked for is empty or None.   device: the id of -i; assumed: counted, since no text told it.

    link: `UP` or `DOWN`; health: of `-net_health`; settings: other names of the configuration; lines: where each thing stands.
    """

    device: int
    assumed: bool = False
    link: str = ""
    health: str = ""
    ip: str = ""
    netmask: str = ""
    gateway: str = ""
    netdetect: str = ""
    mac: str = ""
    mtu: int | None = None
    speed_mbit_per_s: int | None = None
    fec: str = ""
    optical: Optical | None = None
    tls: Tls | None = None
    history: LinkHistory | None = None
    pings: tuple[Ping, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    neighbour: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Hccn:
    """All ports of a text, in the order of their ids.   from_file: the text is /etc/hccn.conf."""

    devices: tuple[HccnDevice, ...] = ()
    from_file: bool = False
    complaints: tuple[Complaint, ...] = ()

    def device(self, number: int) -> HccnDevice | None:
        """That port, None where the text does not speak of it."""
        return next((one for one in self.devices if one.device == number), None)


HEALTHY = ("success", "init")  # Init: no address to detect is set, which says nothing about the link
FLAPS = 5  # link changes after which a link is called unsteady: boot and training of a link make some
MOST = 600  # counters, settings, changes of one device that are kept; the tool writes some hundred
RISKY = re.compile(r"roce_\w*(?:_err|_rty|_unexpected)\w*|mac_\w*(?:fcs|crc|_bad|_err)\w*")  # counters that stay 0 on a sound network

_COMMAND = re.compile(r"hccn_tool\s+-i\s+(\S{1,20})(?:\s+-([a-z_]{2,20}))?(?:.{0,40}\baddress\s+(\S{1,45}))?")
_SETTING = re.compile(r"\s*([a-z][a-z_0-9]{1,40}?)_([0-9]{1,3})\s*=\s*(.*)")
_OF_DEVICE = re.compile(r"\[device\s+([0-9]{1,3})\]\s*(.*)")
_TLS = re.compile(r"dev_id:\s*([0-9]{1,3}),\s*tls switch\[([01])\]")
_PRESET, _DAYS = re.compile(r"preconfigured\[([01])\]"), re.compile(r"time threshold\[([0-9]{1,6})\]")
_COUNTER = re.compile(r"\s*([a-z][a-z0-9]{0,20}(?:_[a-z0-9]{1,20}){1,10})\s*:\s*([0-9]{1,20})\s*")
_PACKETS = re.compile(r"([0-9]{1,9}) packets transmitted, ([0-9]{1,9}) (?:packets )?received")
_TIME = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2})\s{1,3}([0-9]{1,2}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) ([0-9]{4})")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_VALUE = re.compile(r"([A-Za-z][A-Za-z _]{0,40}?)\s*[:：]\s*(.*)")
_FAILED = re.compile(
    r"hccn_tool.{0,60}(?:command not found|not found|no such file|busy|denied)|cmd execute failed|get \w+ (?:info )?failed", re.IGNORECASE
)
_POWERS = {
    "tx power": "tx_power_mw", "rx power": "rx_power_mw", "txpower high thres": "tx_high_mw", "txpower low thres": "tx_low_mw",
    "rxpower high thres": "rx_high_mw", "rxpower low thres": "rx_low_mw",
}  # fmt: skip
_FLAGS = {"tx los flag": "tx_los", "rx los flag": "rx_los"}
_PLAIN = {  # the tool's words -> the field
    "net health status": "health", "link status": "link", "ipaddr": "ip", "netmask": "netmask", "fec mode": "fec", "netdetect address": "netdetect",
    "default gateway": "gateway", "gateway": "gateway", "mac addr": "mac",
}  # fmt: skip
_LOOSE = {"gateway", "netmask"}  # words that other texts use, too
_SETTINGS = {"address": "ip", "netmask": "netmask", "netdetect": "netdetect", "gateway": "gateway"}


def parse_hccn(text: str) -> Hccn:
    """The ports that a text of hccn_tool, or of /etc/hccn.conf, speaks of.

    >>> found = parse_hccn("$ hccn_tool -i 3 -link -g\\nlink status: DOWN\\n$ hccn_tool -i 3 -ip -g\\nipaddr:10.0.0.3")
    >>> found.devices[0].device, found.devices[0].link, found.devices[0].ip
    (3, 'DOWN', '10.0.0.3')
    """
    lines = plain_lines(text)
    gather = _Gather()
    from_file = any(_SETTINGS.get(name[1]) or name[1] == "send_arp_status" for name in map(_SETTING.fullmatch, lines) if name)
    for at, line in enumerate(lines, 1):
        if not line.strip():
            continue
        setting = _SETTING.fullmatch(line) if from_file else None
        if setting:
            gather.set_setting(int(setting[2]), setting[1], setting[3].strip(), at)
        elif not gather.command(line) and not line.lstrip().startswith("#"):
            gather.take(line, at)
    devices = tuple(gather.devices[number] for number in sorted(gather.devices))
    complaints = list(gather.complaints)
    if not devices and not complaints:
        what = f"the text begins {quoted(text[:200])}" if text.strip() else "the text is empty"
        complaints.append(Complaint(f"hccn: no output of hccn_tool and no setting was recognised, {what}", 0, "nothing"))
    return Hccn(devices, from_file, tuple(complaints))


class _Gather:
    """What was read so far.  It has state since the next line belongs to the command, section or device before it."""

    def __init__(self) -> None:
        self.devices: dict[int, HccnDevice] = {}
        self.complaints: list[Complaint] = []
        self.current: int | None = None  # the device that lines belong to
        self.loop: list[int] = []  # devices of a loop over all, still to come
        self.looped = False
        self.counted = -1  # the last device that was counted, not named
        self.form = ""
        self.address = ""
        self.section = ""

    def command(self, line: str) -> bool:
        """Whether the line is a command; the next lines are its output."""
        around = loops(line) if "hccn_tool" in line else []
        found = _COMMAND.search(line) if "hccn_tool" in line else None
        if found is None:
            return False
        self.form, self.address, self.section = found[2] or "", found[3] or "", ""
        self.current = int(found[1]) if re.fullmatch(r"[0-9]{1,3}", found[1]) else None
        self.loop, self.counted, self.looped = [], -1, bool(around)
        if around:
            self.loop = around[0]
        return True

    def device(self, name: str) -> int:
        """The device of the next value; where nothing told one, a name that comes again means the next device."""
        if self.current is not None:
            return self.current
        mine = self.devices.get(self.counted)
        if self.counted < 0 or mine is None or name in mine.lines:
            self.counted = self.loop.pop(0) if self.loop else self.counted + 1
        return self.counted

    def put(self, name: str, at: int, number: int | None, values: dict[str, Any]) -> None:
        """Fields of a device; `name` is what its lines are known by."""
        device = self.device(name) if number is None else number
        old = self.devices.get(device, HccnDevice(device, assumed=number is None and self.current is None and not self.looped))
        self.devices[device] = replace(old, lines={**old.lines, name: at}, **values)

    def old(self, number: int) -> HccnDevice:
        return self.devices.get(number, HccnDevice(number))

    def set_setting(self, number: int, name: str, value: str, at: int) -> None:
        if name in _SETTINGS:
            self.put(_SETTINGS[name], at, number, {_SETTINGS[name]: value})
        elif name == "mtu" and re.fullmatch(r"[0-9]{1,6}", value):
            self.put("mtu", at, number, {"mtu": int(value)})
        elif len(self.old(number).lines) < MOST:
            settings = self.old(number).settings
            self.put(name, at, number, {"settings": {**settings, name: f"{settings[name]}; {value}" if name in settings else value}})

    def take(self, line: str, at: int) -> None:
        """One line of an output."""
        of_device = _OF_DEVICE.search(line)
        if of_device:
            self._history(int(of_device[1]), of_device[2], at)
            return
        tls = _TLS.search(line)
        if tls:
            preset, days = _PRESET.search(line), _DAYS.search(line)
            self.put(
                "tls", at, int(tls[1]), {"tls": Tls(tls[2] == "1", preset[1] == "1" if preset else None, int(days[1]) if days else None)}
            )
            return
        packets = _PACKETS.search(line)
        if packets:
            number = self.device("ping")
            ping = Ping(self.address, int(packets[1]), int(packets[2]))
            self.put("ping", at, number, {"pings": (*self.old(number).pings[-MOST:], ping)})
            return
        if _FAILED.search(line):
            where = "" if self.current is None else f" of device {self.current}"
            if self.form == "ip" and self.current is not None:
                self.put("ip", at, self.current, {"ip": ""})
            self.complaints.append(Complaint(f"hccn_tool{where}: it failed, {quoted(line)}", at, "failed"))
            return
        heading = line.strip().rstrip(":").lower()
        if heading in {"optical info", "packet statistics"}:
            self.section = heading
            if heading == "optical info":
                self.put("optical", at, None, {"optical": Optical()})
            return
        self._value(line, at)

    def _value(self, line: str, at: int) -> None:
        counter = _COUNTER.fullmatch(line) if self.form or self.section else None
        if counter:
            number = self.device(counter[1])
            if len(self.old(number).lines) >= MOST:
                return
            self.put(counter[1], at, number, {"counters": {**self.old(number).counters, counter[1]: int(counter[2])}})
            return
        found = _VALUE.search(line)
        if found is None:
            if self.form == "lldp" and line.strip():
                self.section = line.strip()
            return
        words, value = found[1].strip().lower(), found[2].split("  #")[0].strip()
        if words in _PLAIN and (self.form or words not in _LOOSE):
            name = _PLAIN[words]
            value = value.upper() if name == "link" else value.split(",")[0].strip()
            value = "" if name == "ip" and value == "0.0.0.0" else value  # none is set
            self.put(name, at, None, {name: value})
            if name == "link" and value not in {"UP", "DOWN"}:
                self.complaints.append(Complaint(f"hccn_tool: link status must be UP or DOWN, got {quoted(value)}", at, "value"))
        elif words in {"mtu", "speed"} and self.form:
            digits = re.match(r"[0-9]{1,9}", value)
            if digits:
                self.put(words, at, None, {"mtu" if words == "mtu" else "speed_mbit_per_s": int(digits[0])})
        elif self.section == "optical info":
            self._optical(words, value, at)
        elif self.form == "lldp":
            number = self.device("neighbour")
            if len(self.old(number).lines) >= MOST:
                return
            key = f"{self.section}: {found[1].strip()}" if self.section else found[1].strip()
            self.put(key, at, number, {"neighbour": {**self.old(number).neighbour, key: value}})

    def _optical(self, words: str, value: str, at: int) -> None:
        number = self.current if self.current is not None else self.counted
        optical = self.old(number).optical or Optical()
        changed: dict[str, Any] = {}
        if words == "present":
            changed["present"] = value.lower() == "present"
        elif words in _POWERS:
            power = re.fullmatch(r"(-?[0-9]{1,6}(?:\.[0-9]{1,9})?)\s*(?:mW)?", value)
            if power is None and value.upper() not in {"NA", "-", ""}:
                self.complaints.append(Complaint(f"hccn_tool: {words} must be in mW, got {quoted(value)}", at, "value"))
            changed[_POWERS[words]] = float(power[1]) if power else None
        elif words in _FLAGS:
            flag = re.fullmatch(r"0x[0-9a-fA-F]{1,8}", value)
            changed[_FLAGS[words]] = int(value, 16) if flag else None
        else:
            changed["others"] = {**dict(list(optical.others.items())[:MOST]), words: value}
        self.put("optical", self.old(number).lines.get("optical", at), number, {"optical": replace(optical, **changed)})

    def _history(self, number: int, rest: str, at: int) -> None:
        """A line of -link_stat, which names its device."""
        history = self.old(number).history or LinkHistory()
        name = rest.lower()
        count = re.search(r":\s*([0-9]{1,9})", rest)
        change = re.search(r"LINK (UP|DOWN)", rest)
        if change:
            history = replace(history, changes=(*history.changes[:MOST], LinkChange(_time(rest), change[1] == "UP")))
        elif name.startswith("current time"):
            history = replace(history, now=_time(rest))
        elif name.startswith("link up count") and count:
            history = replace(history, up_count=int(count[1]))
        elif name.startswith("link down count") and count:
            history = replace(history, down_count=int(count[1]))
        elif not name.startswith("link change records"):
            self.complaints.append(Complaint(f"hccn_tool: a line of device {number} was not understood, {quoted(rest)}", at, "line"))
            return
        self.put("history", self.old(number).lines.get("history", at), number, {"history": history})


def _time(text: str) -> datetime | None:
    """`Wed Jun  7 10:08:28 2023`, in any language of the process."""
    found = _TIME.search(text)
    if found is None or found[1] not in _MONTHS:
        return None
    try:
        return datetime(int(found[6]), _MONTHS.index(found[1]) + 1, int(found[2]), int(found[3]), int(found[4]), int(found[5]))
    except ValueError:
        return None


def check_hccn(hccn: Hccn) -> tuple[Complaint, ...]:
    """What is wrong with the ports: links that are down, TLS on some only, addresses twice or missing, optics out of bounds, counters of errors."""
    found = []
    for one in hccn.devices:
        found += [Complaint(f"device {one.device}: {what}", one.lines.get(name, 0), kind) for name, kind, what in _faults(one)]
    found += _between(hccn)
    return tuple(found)


def _faults(one: HccnDevice) -> list[tuple[str, str, str]]:
    """Of one port: the name of its line, the kind, the words."""
    found = []
    if one.link == "DOWN":
        found.append(("link", "link-down", "link status must be UP, got DOWN: cable, optical module or switch"))
    if one.health and one.health.lower() not in HEALTHY:
        found.append(("health", "net-health", f"net health must be Success, got {one.health}"))
    if one.health.lower() == "init" and not one.netdetect:
        found.append(("health", "netdetect-unset", "net health is Init: no netdetect address is set, so it tells nothing about the link"))
    if "ip" in one.lines and not one.ip:
        found.append(("ip", "ip-missing", "an address must be set, got none"))
    if one.optical is not None:
        found += [("optical", kind, what) for kind, what in _optics(one.optical)]
    if one.history is not None and len(one.history.changes) > FLAPS:
        found.append(("history", "link-flaps", f"the link changed {len(one.history.changes)} times"))
    for ping in one.pings:
        if ping.received < ping.sent:
            found.append(("ping", "ping-lost", f"ping {ping.address}: {ping.received} of {ping.sent} packets came back".replace("  ", " ")))
    for name, value in one.counters.items():
        if value > 0 and RISKY.fullmatch(name):
            found.append((name, "counter", f"{name} must be 0, got {value}"))
    return found


def _optics(optical: Optical) -> list[tuple[str, str]]:
    if optical.present is False:
        return [("optical-absent", "optical module: not present")]
    found = []
    for name, power, low, high in (
        ("Tx", optical.tx_power_mw, optical.tx_low_mw, optical.tx_high_mw),
        ("Rx", optical.rx_power_mw, optical.rx_low_mw, optical.rx_high_mw),
    ):
        if power is not None and low is not None and high is not None and not low <= power <= high:
            found.append(("optical-power", f"{name} power must be {low:g} to {high:g} mW, got {power:g}"))
    for name, flag in (("Tx", optical.tx_los), ("Rx", optical.rx_los)):
        if flag:
            found.append(("optical-signal", f"{name} signal is lost on lanes {flag:#x}"))
    return found


def _between(hccn: Hccn) -> list[Complaint]:
    """What shows only when ports are compared."""
    found = []
    secure = {one.device: one.tls.on for one in hccn.devices if one.tls is not None}
    if len(set(secure.values())) > 1:
        on, off = (", ".join(str(d) for d, tls in secure.items() if tls is state) for state in (True, False))
        found.append(Complaint(f"tls switch must be the same on all devices, got on: {on}; off: {off}", 0, "tls-mixed"))
    owners: dict[str, int] = {}
    for one in hccn.devices:
        if one.ip and one.ip in owners:
            what = f"device {one.device}: address {one.ip} must be unique, device {owners[one.ip]} has it too"
            found.append(Complaint(what, one.lines.get("ip", 0), "ip-twice"))
        owners.setdefault(one.ip, one.device)
    masks = {one.netmask for one in hccn.devices if one.netmask}
    if len(masks) > 1:
        found.append(Complaint(f"netmask must be the same on all devices, got {', '.join(sorted(masks))}", 0, "netmask-mixed"))
    sizes = sorted({one.mtu for one in hccn.devices if one.mtu is not None})
    if len(sizes) > 1:
        found.append(Complaint(f"mtu must be the same on all devices, got {', '.join(map(str, sizes))}", 0, "mtu-mixed"))
    return found
