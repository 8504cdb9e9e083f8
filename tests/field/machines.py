"""Machines that are made up from samples: the files that a user would copy off each, the rule that must lead, and its layer.

In: samples/ (texts of npu-smi and version files, as ../README of the field facts names them).  Out: `MACHINES`, written by `write_folder`, `write_archive`.
`python tests/field/machines.py OUT` writes every machine below OUT, to try `jumar doctor --from` on it.
"""

from __future__ import annotations

import io
import platform
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SAMPLES = Path(__file__).parent / "samples"
TOOLKIT = "usr/local/Ascend/ascend-toolkit"
KERNELS = "opp/built-in/op_impl/ai_core/tbe/kernel/config"


@dataclass(frozen=True)
class Kind:
    """A machine.   files: what was copied; rule: what must be found first (empty: nothing is wrong); layer: at fault."""

    name: str
    files: Mapping[str, str]
    rule: str = ""
    layer: str = ""


def sample(name: str, *changes: tuple[str, str]) -> str:
    """A sample, with texts in it replaced."""
    text = (SAMPLES / name).read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, f"{name} must hold {old!r}"
        text = text.replace(old, new)
    return text


def driver(version: str = "25.0.rc1.1", branch: str = "C21", serves: str = "C17,C18,C19,C20,C21", firmware: str = "7.0.0,7.7.99") -> str:
    listed = ",".join(f"[V100R001{b}]" for b in serves.split(","))
    return sample(
        "driver_version.info_24.1.rc3",
        ("24.1.rc3", version),
        ("V100R001C19SPC001B124", f"V100R001{branch}SPC002B220"),
        ("[V100R001C13],[V100R001C15],[V100R001C17],[V100R001C18],[V100R001C19]", listed),
        ("[7.0.0,7.5.99]", f"[{firmware}]"),
    )


def firmware(
    version: str = "7.7.0.1.231", package: str = "25.0.rc1.1", serves: str = "[23.0.0,23.0.0.],[24.0,24.0.],[24.1,24.1.],[25.0,25.0.]"
) -> str:
    return sample(
        "firmware_version.info_24.1.rc3",
        ("7.5.0.1.129", version),
        ("package_version=24.1.rc3", f"package_version={package}"),
        ("[23.0.0,23.0.0.],[24.0,24.0.],[24.1,24.1.]", serves),
    )


def smi(version: str = "25.0.rc1.1", chip: str = "910B1") -> str:
    return sample("01_910B1_24.1.rc3_idle.txt", ("24.1.rc3", version), ("910B1", chip))


def cann(
    release: str = "8.1.RC1", inner: str = "7.7.0.1.238", branch: str = "C21", kernels: str = "ascend910b", kernels_inner: str = ""
) -> dict[str, str]:
    """A toolkit with its kernels, below /usr/local/Ascend/ascend-toolkit/<release>."""
    home, short = f"{TOOLKIT}/{release}", ".".join(inner.split(".")[:2])
    swap = (("7.7.0.1.238", inner), ("8.1.RC1", release))
    ranges = (('"7.7"', f'"{short}"'), (">=7.6, <=7.7", f">={short}, <={short}"))
    own = sample("opp_kernel_version.info_8.1.RC1", *swap, ranges[1])
    if kernels_inner:
        own = own.replace(f"Version={inner}", f"Version={kernels_inner}", 1)
    return {
        f"{home}/aarch64-linux/ascend_toolkit_install.info": sample(
            "ascend_toolkit_install.info_8.1.RC1", ("8.1.RC1", release), ("V100R001C21SPC001B238", f"V100R001{branch}SPC001B238")
        ),
        f"{home}/compiler/version.info": sample("compiler_version.info_8.1.RC1", *swap, *ranges),
        f"{home}/runtime/version.info": sample("runtime_version.info_8.1.RC1", *swap, *ranges),
        f"{home}/opp_kernel/version.info": own,
        f"{home}/version.cfg": sample("latest_version.cfg_8.1.RC1", *swap),
        f"kernels_{release}.txt": f"$ ls -l /{home}/{KERNELS}\n" + _folders(kernels),
    }


def _folders(names: str) -> str:
    rows = "".join(f"drwxr-xr-x 2 root root 4096 Apr 28 20:30 {name}\n" for name in names.split())
    return f"total {4 * len(names.split())}\n{rows}"


NODES = ("davinci0", "davinci1", "davinci_manager", "devmm_svm", "hisi_hdc")


def dev(*names: str, mode: str = "crw-rw-rw-") -> str:
    rows = "".join(f"{mode} 1 HwHiAiUser HwHiAiUser 236, {i} Nov  3 10:00 {name}\n" for i, name in enumerate(names or NODES))
    return f"[root@node1 ~]# ls -l /dev\ntotal 0\n{rows}"


def environment(release: str = "8.1.RC1", libraries: str = "", **more: str) -> str:
    home = f"/{TOOLKIT}/{release}"
    used = f"/{TOOLKIT}/{libraries or release}"
    values = {
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "ASCEND_TOOLKIT_HOME": home,
        "ASCEND_HOME_PATH": home,
        "ASCEND_OPP_PATH": f"{home}/opp",
        "LD_LIBRARY_PATH": f"{used}/lib64:{used}/lib64/plugin/opskernel:/usr/local/Ascend/driver/lib64:/usr/local/Ascend/driver/lib64/common",
        "PYTHONPATH": f"{home}/python/site-packages:{home}/opp/built-in/op_impl/ai_core/tbe",
        "PATH": f"{home}/bin:/usr/local/bin:/usr/bin:/bin",
        **more,
    }
    return "".join(f"{name}={value}\n" for name, value in values.items())


def pip(**versions: str) -> str:
    packages = {
        "attrs": "23.2.0", "decorator": "5.1.1", "numpy": "1.26.4", "pip": "24.0", "psutil": "5.9.8", "scipy": "1.13.1",
        "torch": "2.5.1", "torch_npu": "2.5.1", **versions,
    }  # fmt: skip
    rows = "".join(f"{name:<16} {version}\n" for name, version in sorted(packages.items()) if version)
    return f"Package          Version\n---------------- ----------\n{rows}"


MODULES = "Module                  Size  Used by\ndrv_devmng_host       450560  4 drv_pcie_host\ndrv_pcie_host         299008  0\n"
NO_MODULES = "Module                  Size  Used by\nnf_tables             258048  0\nxfs                  1699840  1\n"


def host(**changes: str) -> dict[str, str]:
    """A healthy 910B host as a user copies it; names with __ for . and of other files replace or add."""
    files = {
        "etc/ascend_install.info": sample("etc_ascend_install.info"),
        "etc/os-release": 'PRETTY_NAME="openEuler 22.03 (LTS-SP4)"\nNAME="openEuler"\n',
        "usr/local/Ascend/driver/version.info": driver(),
        "usr/local/Ascend/firmware/version.info": firmware(),
        "npu-smi.txt": smi(),
        "ls_dev.txt": dev(),
        "env.txt": environment(),
        "pip_list.txt": pip(),
        "lsmod.txt": MODULES,
        "uname.txt": "Linux node1 5.10.0-216.0.0.115.oe2203sp4.aarch64 #1 SMP aarch64 aarch64 aarch64 GNU/Linux\n",
        "ldd.txt": "ldd (GNU libc) 2.34\n",
        "python.txt": "Python 3.10.14\n",
        **cann(),
    }
    return {name: text for name, text in {**files, **changes}.items() if text}


INSIDE = "0::/docker/4f1c\n"  # /proc/1/cgroup of a container
NOT_MAPPED = (
    "root@job:/# ls -l /dev/davinci* /dev/davinci_manager /dev/devmm_svm /dev/hisi_hdc\n"
    "ls: cannot access '/dev/davinci*': No such file or directory\n"
    "ls: cannot access '/dev/davinci_manager': No such file or directory\n"
    "ls: cannot access '/dev/devmm_svm': No such file or directory\n"
    "ls: cannot access '/dev/hisi_hdc': No such file or directory\n"
)
OLD_DRIVER = {
    "usr/local/Ascend/driver/version.info": driver("23.0.rc3", "C13", "C13,C30", "7.0.0,7.1.99"),
    "usr/local/Ascend/firmware/version.info": firmware("7.1.0.3.220", "23.0.rc3", "[23.0.rc3,23.0.rc3.],[23.0.0,23.0.0.]"),
    "npu-smi.txt": smi("23.0.rc3"),
}
FIRST = {
    "usr/local/Ascend/driver/version.info": driver("24.1.0.3", "C19", "C13,C15,C17,C18,C19", "7.0.0,7.6.99"),
    "usr/local/Ascend/firmware/version.info": firmware("7.5.0.5.220", "24.1.0.3", "[24.0,24.0.],[24.1,24.1.]"),
    "npu-smi.txt": sample("06_910_first_generation_named_910B_24.1.0.3.txt"),
    "pip_list.txt": pip(vllm_ascend="0.8.4rc2"),
}
IP = "$ ip -o link\n1: lo: <LOOPBACK,UP> mtu 65536 state UNKNOWN\n2: enp1s0: <BROADCAST,UP> mtu 1500 qdisc mq state UP\n"
JUMBO = IP.replace("mtu 1500", "mtu 9000")
BRIDGE = (
    f"{IP}3: br-8c1f: <BROADCAST,UP> mtu 1500 state UP\n$ ip -o -4 addr\n"
    "1: lo    inet 127.0.0.1/8 scope host lo\n2: enp1s0    inet 10.1.1.8/24 scope global enp1s0\n3: br-8c1f    inet 172.18.0.1/16 scope global br-8c1f\n"
)
TLS = "".join(f"$ hccn_tool -i {i} -tls -g\ndev_id:{i}, tls switch[{i % 2}](0:disable, 1:enable), tls preconfigured[1]\n" for i in range(2))

ON_310P = f"$ ls -l /{TOOLKIT}/8.1.RC1/{KERNELS}\n" + _folders("ascend310p")
NEWER = {**dict.fromkeys(cann(), ""), **cann("8.2.RC1", "7.8.0.1.220"), "env.txt": environment("8.2.RC1")}
WORKER = "uid=1001(worker) gid=1001(worker) groups=1001(worker),27(sudo)\n"
CLOSED = {"ls_dev.txt": dev(mode="crw-rw----"), "id.txt": WORKER}
NOT_FOR_ALL = sample("etc_ascend_install.info", ("Driver_Install_For_All=yes", "Driver_Install_For_All=no"))
DISK = "Filesystem      Size  Used Avail Use% Mounted on\n/dev/sda2       100G  100G   20M 100% /\n/dev/sdb1       1.8T  200G  1.6T  12% /data\n"
RUN = "docker run -it --name npu --device /dev/davinci0 -v /usr/local/Ascend/driver:/usr/local/Ascend/driver ascendai/cann:8.1.rc1 bash\n"
RUN_BOUND = (
    "docker run -it --name npu -v /dev:/dev -v /usr/local/Ascend/driver:/usr/local/Ascend/driver -v /usr/local/bin/npu-smi:/usr/local/bin/npu-smi"
    " ascendai/cann:8.1.rc1 bash\n"
)
READ_ONLY = "$ mount\noverlay on / type overlay (ro,relatime,lowerdir=/var/lib/x)\nproc on /proc type proc (rw,nosuid)\ntmpfs on /tmp type tmpfs (rw)\n"
BARE = "HOME=/root\nPATH=/usr/local/bin:/usr/bin\nLD_LIBRARY_PATH=/usr/local/Ascend/driver/lib64\n"
ALARM = sample("09_310B1_23.0.5_all_Alarm.txt", ("23.0.5", "25.0.rc1.1"))
BUSY = sample("04_910B3_busy_hbm_91_percent.txt", ("26.0.rc1", "25.0.rc1.1"))
NO_PROCESS = "".join(  # the table of processes below it
    f"{row}\n"
    for row in (
        "+---------------------------+---------------+----------------------------------------------------+",
        "| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |",
        "+===========================+===============+====================================================+",
        *(f"| No running processes found in NPU {npu}                                                            |" for npu in (3, 4)),
    )
)
HOT = sample(
    "01_910B1_24.1.rc3_idle.txt", ("24.1.rc3", "25.0.rc1.1"), ("| OK            | 97.8        48", "| Warning       | 97.8        97")
)
COMMON = sample(
    "31_t_common_910B4.txt",
    ("info -t common -i 0", "info -t common -i 1"),
    ("NPU ID                         : 0", "NPU ID                         : 1"),
)
SLOW = COMMON.replace("curFreq(MHZ)            : 1800", "curFreq(MHZ)            : 800")
ECC = sample("27_t_ecc_910.txt", ("HBM Double Bit Error Count               : 0", "HBM Double Bit Error Count               : 2"))
LSPCI = "".join(
    f"{bus}:00.0 Processing accelerators: Huawei Technologies Co., Ltd. Device d802 (rev 20)\n" for bus in ("01", "02", "41", "42")
)
STUB = f"/{TOOLKIT}/8.1.RC1/runtime/lib64/stub"
OTHER_KERNEL = (
    "[   11.2] drv_seclib_host: version magic '5.10.0-182.0.0.95.oe2203sp3.aarch64 SMP mod_unload aarch64'"
    " should be '5.10.0-216.0.0.115.oe2203sp4.aarch64 SMP mod_unload aarch64'\n"
)
UNSIGNED = "[   11.2] Loading of module with unavailable key is rejected\n"
NO_CARD = {"npu-smi.txt": sample("11_container_minus_8005.txt"), "proc/1/cgroup": INSIDE, "lsmod.txt": ""}
NO_OVERRIDE = {
    "ls_dev.txt": dev(mode="crw-rw----"),
    "id.txt": "uid=0(root) gid=0(root) groups=0(root)\n",
    "proc/self/status": "Name:\tcat\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n",
    "proc/1/cgroup": INSIDE,
    "lsmod.txt": "",
}
MIXED = {**cann("8.0.RC3", "7.5.0.1.129", "C19"), "env.txt": environment("8.1.RC1", libraries="8.0.RC3")}
NEW_FIRMWARE = firmware("8.1.0.1.100", "26.0.rc1", "[25.5,25.5.],[26.0,26.0.]")


def _kind(name: str, rule: str, layer: str, changes: Mapping[str, str]) -> Kind:
    return Kind(name, host(**changes), f"machine-{rule}", layer)


MACHINES = (
    Kind("healthy", host()),
    _kind("driver-too-old", "driver-too-old-for-cann", "version_mismatch", OLD_DRIVER),
    _kind("container-without-nodes", "container-nodes-missing", "container", {"ls_dev.txt": NOT_MAPPED, **NO_CARD}),
    _kind("two-canns-mixed", "cann-mixed", "cann_env", MIXED),
    _kind("first-generation", "first-generation-taken-for-a2", "version_mismatch", FIRST),
    # kinds beyond the five that are asked for
    _kind("firmware-too-new", "driver-firmware-mismatch", "driver_firmware", {"usr/local/Ascend/firmware/version.info": NEW_FIRMWARE}),
    _kind(
        "half-upgraded",
        "driver-half-upgraded",
        "driver_firmware",
        {"npu-smi.txt": smi().replace("Version: 25.0.rc1.1", "Version: 24.1.rc3")},
    ),
    _kind(
        "no-modules", "driver-modules-missing", "driver_firmware", {"lsmod.txt": NO_MODULES, "ls_dev.txt": dev("shm"), "npu-smi.txt": ""}
    ),
    _kind("alarm", "card-unhealthy", "driver_firmware", {"npu-smi.txt": ALARM, "kernels_8.1.RC1.txt": ""}),
    _kind(
        "device-used",
        "npu-smi-device-used",
        "container",
        {"npu-smi.txt": sample("12_container_device_used_minus_8020.txt"), "proc/1/cgroup": INSIDE},
    ),
    _kind("not-sourced", "cann-not-sourced", "cann_env", {"env.txt": BARE}),
    _kind("torch-pair", "torch-npu-for-other-torch", "version_mismatch", {"pip_list.txt": pip(torch="2.6.0")}),
    _kind("numpy-2", "numpy-2-with-old-wheel", "python_abi", {"pip_list.txt": pip(numpy="2.1.3", torch="2.1.0", torch_npu="2.1.0.post12")}),
    _kind(
        "old-glibc",
        "glibc-too-old",
        "python_abi",
        {**NEWER, "ldd.txt": "ldd (GNU libc) 2.17\n", "pip_list.txt": pip(torch="2.6.0", torch_npu="2.6.0")},
    ),
    _kind("kernels-of-310p", "kernels-for-other-chip", "cann_env", {"kernels_8.1.RC1.txt": ON_310P}),
    _kind("kernels-too-old", "kernels-of-other-version", "version_mismatch", cann(kernels_inner="7.5.0.1.129")),
    _kind("network-card", "network-card-absent", "hccl", {"env.txt": environment(HCCL_SOCKET_IFNAME="eth0"), "ip.txt": IP}),
    _kind("tls-mixed", "hccl-tls-mixed", "hccl", {"hccn.txt": TLS}),
    _kind("rank-table", "rank-table-bad", "hccl", {"hccl.json": sample("bad_duplicate_device_ip.json")}),
    _kind("no-permission", "device-nodes-permission", "driver_firmware", {**CLOSED, "etc/ascend_install.info": NOT_FOR_ALL}),
    _kind("nodes-closed", "device-nodes-closed", "driver_firmware", CLOSED),
    _kind("card-held", "card-memory-held-unseen", "memory", {"npu-smi.txt": BUSY + NO_PROCESS}),
    _kind("overheated", "card-slowed", "driver_firmware", {"npu-smi.txt": HOT, "common1.txt": SLOW}),
    _kind("hot", "card-hot", "driver_firmware", {"npu-smi.txt": HOT}),
    _kind(
        "bit-errors",
        "card-bit-errors",
        "driver_firmware",
        {"npu-smi.txt": HOT.replace("Warning", "Alarm  ").replace("        97 ", "        48 "), "ecc.txt": ECC},
    ),
    _kind("card-gone", "card-gone", "driver_firmware", {"ls_dev.txt": dev("davinci0", "davinci1", "davinci3", *NODES[2:])}),
    _kind("card-not-up", "card-not-up", "driver_firmware", {"lspci.txt": LSPCI}),
    _kind("card-off-the-bus", "card-link-lost", "driver_firmware", {"lspci.txt": LSPCI.replace("d802 (rev 20)", "d802 (rev ff)", 1)}),
    _kind(
        "stubs",
        "stub-libraries-first",
        "cann_env",
        {"env.txt": environment(LD_LIBRARY_PATH=f"{STUB}:/usr/local/Ascend/driver/lib64/driver")},
    ),
    _kind(
        "other-kernel",
        "driver-for-other-kernel",
        "driver_firmware",
        {"lsmod.txt": NO_MODULES, "ls_dev.txt": dev("shm"), "npu-smi.txt": "", "dmesg.txt": OTHER_KERNEL},
    ),
    _kind(
        "secure-boot",
        "driver-module-refused",
        "driver_firmware",
        {"lsmod.txt": NO_MODULES, "ls_dev.txt": dev("shm"), "npu-smi.txt": "", "dmesg.txt": UNSIGNED},
    ),
    _kind("disk", "disk-full", "cann_env", {"df.txt": DISK}),
    _kind("device-cgroup", "device-cgroup-refuses", "container", {"run.sh": RUN_BOUND, "proc/1/cgroup": INSIDE, "lsmod.txt": ""}),
    _kind("capabilities-dropped", "root-without-override", "container", NO_OVERRIDE),
    _kind("read-only", "work-folder-unwritable", "cann_env", {"mount.txt": READ_ONLY}),
    _kind("bridge-taken", "host-card-local", "hccl", {"env.txt": environment(NNODES="2", MASTER_ADDR="10.1.1.7"), "ip.txt": BRIDGE}),
    _kind("other-address", "host-address-absent", "hccl", {"env.txt": environment(HCCL_IF_IP="10.1.1.7"), "ip.txt": BRIDGE}),
    _kind("jumbo-mixed", "host-mtu-differs", "hccl", {"env.txt": environment(HCCL_SOCKET_IFNAME="enp"), "a/ip.txt": IP, "b/ip.txt": JUMBO}),
    _kind("run-line", "container-nodes-missing", "container", {"run.sh": RUN}),
)
KINDS = {kind.name: kind for kind in MACHINES}


def write_root(root: Path) -> Path:
    """The healthy 910B host as a tree of files, as `gather` finds them on the machine itself; its nodes are plain files that all may write."""
    for name, text in KINDS["healthy"].files.items():
        if name.startswith(("etc/", "usr/")):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("arch=aarch64", f"arch={platform.machine()}"))
    for name in (*NODES, "shm"):
        (root / "dev").mkdir(exist_ok=True)
        (root / "dev" / name).touch()
        (root / "dev" / name).chmod(0o666)
    for folder in ("usr/local/Ascend/driver/lib64", "usr/local/bin", f"{TOOLKIT}/8.1.RC1/{KERNELS}/ascend910b", "proc/1", "sys/class/net"):
        (root / folder).mkdir(parents=True)
    (root / "proc/modules").write_text("drv_pcie_host 299008 0 - Live 0x0\n")
    (root / "proc/1/cgroup").write_text("0::/init.scope\n")
    return root


def write_folder(kind: Kind, folder: Path) -> Path:
    for name, text in kind.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def write_archive(kind: Kind, path: Path, top: str = "node1") -> Path:
    """A tar.gz with everything below one folder, as people pack it."""
    with tarfile.open(path, "w:gz") as archive:
        for name, text in kind.files.items():
            data = text.encode()
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


if __name__ == "__main__":
    for one in MACHINES:
        write_folder(one, Path(sys.argv[1]) / one.name)
