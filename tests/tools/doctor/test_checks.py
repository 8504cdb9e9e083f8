"""Each check finds its fault and is quiet on machines that are well, of every generation and in every usual layout."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.field.machines import (
    BUSY,
    COMMON,
    INSIDE,
    KERNELS,
    LSPCI,
    NODES,
    NOT_MAPPED,
    SLOW,
    STUB,
    TOOLKIT,
    Kind,
    cann,
    dev,
    driver,
    environment,
    firmware,
    host,
    pip,
    sample,
    smi,
    write_folder,
)

from jumar.tools.doctor.checks import facts
from jumar.tools.doctor.examine import examine
from jumar.tools.doctor.foreign import foreign
from jumar.tools.knowledge import load_rules

LATEST = "/usr/local/Ascend/ascend-toolkit/latest"
NNAL = "/usr/local/Ascend/nnal/atb/latest/atb/cxx_abi_0"
LD = f"{NNAL}/lib:{LATEST}/lib64:{LATEST}/lib64/plugin/opskernel:/usr/local/Ascend/driver/lib64"


def kernels(names: str) -> str:
    rows = "".join(f"drwxr-xr-x 2 root root 4096 Apr 28 20:30 {name}\n" for name in names.split())
    return f"$ ls -l /{TOOLKIT}/8.1.RC1/{KERNELS}\n{rows}"


def driver_of(version: str, branch: str, serves: str, fw: str, range_: str, of: str) -> dict[str, str]:
    return {
        "usr/local/Ascend/driver/version.info": driver(version, branch, serves, range_),
        "usr/local/Ascend/firmware/version.info": firmware(fw, version, of),
    }


D25_2 = driver_of("25.2.0", "C22", "C19,C20,C21,C22", "7.8.0.1.220", "7.0.0,7.8.99", "[24.1,24.1.],[25.0,25.0.],[25.2,25.2.]")
RUN = (
    "docker run -itd --name w --net=host --shm-size=16g --device=/dev/davinci0 --device=/dev/davinci_manager \\\n"
    "  --device=/dev/devmm_svm --device=/dev/hisi_hdc -v /usr/local/dcmi:/usr/local/dcmi \\\n"
    "  -v /usr/local/Ascend/driver:/usr/local/Ascend/driver -v /usr/local/bin/npu-smi:/usr/local/bin/npu-smi ascendai/cann:8.1.rc1 bash\n"
)
STATUS = "Name:\tbash\nNoNewPrivs:\t0\nCapEff:\t00000000a80425fb\nSeccomp:\t2\n"  # what Docker leaves to root
ROOT = "uid=0(root) gid=0(root) groups=0(root)\n"
MOUNTS = (
    "overlay on / type overlay (ro,relatime,lowerdir=/x)\nproc on /proc type proc (rw,nosuid)\n"
    "tmpfs on /tmp type tmpfs (rw)\n/dev/sdb on /models type xfs (ro,noatime)\n"
)
ADDRESSES = (
    "$ ip a\n1: lo: <LOOPBACK,UP> mtu 65536 state UNKNOWN\n    inet 127.0.0.1/8 scope host lo\n"
    "2: eth0: <BROADCAST,UP> mtu 9000 qdisc mq state UP\n    inet 10.1.1.8/24 brd 10.1.1.255 scope global eth0\n"
    "3: eth1: <BROADCAST,UP> mtu 1500 qdisc mq state UP\n    inet 10.2.1.8/24 scope global eth1\n"
    "4: docker0: <BROADCAST,UP> mtu 1500 state DOWN\n    inet 172.17.0.1/16 scope global docker0\n"
    "5: br-8c1f: <BROADCAST,UP> mtu 1500 state UP\n    inet 172.18.0.1/16 scope global br-8c1f\n"
)
BORROWED = "$ ss -tn\nState Recv-Q Send-Q Local Address:Port Peer Address:Port\nESTAB 0 0 10.1.1.8:60003 10.1.1.9:443\n"
HCCN4 = "".join(f"address_{i}=192.168.1.{10 + i}\nnetmask_{i}=255.255.255.0\n" for i in range(4))
TABLE4 = json.dumps(
    {
        "status": "completed",
        "version": "1.0",
        "server_count": "1",
        "server_list": [
            {
                "server_id": "10.1.1.8",
                "device": [{"device_id": str(i), "device_ip": f"192.168.1.{10 + i}", "rank_id": str(i)} for i in range(4)],
            }
        ],
    },
    indent=1,
)
TABLE8 = json.dumps(
    {
        "status": "completed",
        "version": "1.0",
        "server_count": "2",
        "server_list": [
            {
                "server_id": f"10.1.1.{7 + s}",
                "device": [
                    {"device_id": str(i + 4 - 4 * s), "device_ip": f"192.168.{s}.{10 + i}", "rank_id": str(4 * s + i)} for i in range(4)
                ],
            }
            for s in range(2)
        ],
    },
    indent=1,
)
WELL: Mapping[str, Mapping[str, str]] = {
    "latest in every path": {"env.txt": environment("latest", ASCEND_OPP_PATH=f"{LATEST}/opp", LD_LIBRARY_PATH=LD, ATB_HOME_PATH=NNAL)},
    "910B4, ids from 4": {
        "npu-smi.txt": sample("03_910B4_25.3.rc1_32G_ids_from_4.txt", ("25.3.rc1", "25.0.rc1.1")),
        "ls_dev.txt": dev("davinci4", "davinci_manager", "devmm_svm", "hisi_hdc"),
    },
    "A3": {
        **D25_2,
        "npu-smi.txt": sample("05_A3_25.2.1_two_chips_per_npu.txt", ("25.2.1", "25.2.0")),
        "kernels_8.1.RC1.txt": kernels("ascend910_93"),
    },
    "310P": {
        **D25_2,
        "npu-smi.txt": sample("08_310P3_25.2.0_ids_not_contiguous_no_hbm_column.txt"),
        "kernels_8.1.RC1.txt": kernels("ascend310p"),
        "pip_list.txt": pip(torch="", torch_npu=""),
    },
    "310B board": {
        **D25_2,
        "npu-smi.txt": sample("38_310B_RC_board_25.2.0_bus_NA.txt"),
        "kernels_8.1.RC1.txt": kernels("ascend310b"),
        "pip_list.txt": pip(torch="", torch_npu="", mindspore="2.6.0"),
    },
    "first generation with its own kernels": {
        **driver_of("24.1.0.3", "C19", "C13,C15,C17,C18,C19", "7.5.0.5.220", "7.0.0,7.6.99", "[24.0,24.0.],[24.1,24.1.]"),
        "npu-smi.txt": sample("06_910_first_generation_named_910B_24.1.0.3.txt"),
        "kernels_8.1.RC1.txt": kernels("ascend910"),
    },
    "kernels of several chips": {"kernels_8.1.RC1.txt": kernels("ascend310p ascend910 ascend910b ascend910_93")},
    "old names of A2 kernels": {"kernels_8.1.RC1.txt": kernels("ascend910b1 ascend910b2")},
    "container that is well mapped": {"proc/1/cgroup": INSIDE, "lsmod.txt": ""},
    "run line that maps all": {"run.sh": RUN},
    "run line of another program": {"run.sh": "docker run --rm -it nginx:1.27\n"},
    "user in the group": {
        "ls_dev.txt": dev(mode="crw-rw----"),
        "id.txt": "uid=1001(worker) gid=1001(worker) groups=1001(worker),1000(HwHiAiUser)\n",
    },
    "two releases, one used": {
        **cann("8.0.RC3", "7.5.0.1.129", "C19"),
        "pip_list.txt": pip(torch="2.4.0", torch_npu="2.4.0.post4"),
    },
    "TLS off everywhere": {
        "hccn.txt": "".join(f"$ hccn_tool -i {i} -tls -g\ndev_id:{i}, tls switch[0](0:disable, 1:enable)\n" for i in range(2))
    },
    "links up": {"hccn.txt": "$ hccn_tool -i 0 -link -g\nlink status: UP\n$ hccn_tool -i 0 -net_health -g\nnet health status: Success\n"},
    "network card by prefix": {
        "env.txt": environment(HCCL_SOCKET_IFNAME="enp", GLOO_SOCKET_IFNAME="enp1s0", HCCL_CONNECT_TIMEOUT="600"),
        "ip.txt": "$ ip a\n1: lo: <LOOPBACK,UP> mtu 65536 state UNKNOWN\n2: enp1s0: <BROADCAST,UP> mtu 1500 qdisc mq state UP group default\n",
    },
    "disk with room": {
        "df.txt": "Filesystem Size Used Avail Use% Mounted on\n/dev/sda2 100G 80G 20G 80% /\ntmpfs 64M 64M 0 100% /run/lock\n"
    },
    "board says OK": {
        "board.txt": sample("20_t_board_910_first_generation_23.0.5.txt", ("23.0.5", "25.0.rc1.1")),
        "npu-smi.txt": smi(),
    },
    "board without root": {
        "board.txt": sample(
            "20_t_board_910_first_generation_23.0.5.txt", ("23.0.5", "25.0.rc1.1"), ("7.1.0.7.220", "NA"), (": OK", ": UNKNOWN")
        ),
    },
    "table that was cut": {
        "npu-smi.txt": smi().partition("| NPU     Chip")[0],
        "ls_dev.txt": "",
        "env.txt": environment(ASCEND_RT_VISIBLE_DEVICES="4,5,6,7"),
    },
    "CPU build of torch": {"pip_list.txt": pip(torch="2.5.1+cpu", torch_npu="2.5.1.post1"), **cann("8.2.RC1", "7.8.0.1.220")}
    | dict.fromkeys(cann(), "")
    | {"env.txt": environment("8.2.RC1")},
    "MindSpore with its CANN": {"pip_list.txt": pip(torch="", torch_npu="", mindspore="2.6.0")},
    "driver's own log lines": {
        "dmesg.txt": "[ 2081.844061] [ascend] [devmm] [devmm_svm_release_private_proc 2270] <kworker/1:1> Device process exited. (hostpid=-1)\n"
    },
    "listings that were filtered": {
        "ls_dev.txt": "$ ls -l /dev | grep davinci\ncrw-rw-rw- 1 HwHiAiUser HwHiAiUser 236, 0 Nov  3 10:00 davinci0\n",
        "pip_list.txt": "$ pip list | grep npu\ntorch-npu 2.5.1\n",
        "lsmod.txt": "$ lsmod | grep xfs\nxfs 1699840 1\n",
    },
    "user in the group, told in Chinese": {
        "ls_dev.txt": dev(mode="crw-rw----"),
        "id.txt": "用户id=1001(worker) 组id=1001(worker) 组=1001(worker),1000(HwHiAiUser)\n",
    },
    "settings of the kernel": {"sysctl.txt": "kernel.pid_max = 4194304\nvm.nr_hugepages = 0\nvm.overcommit_memory = 0\n"},
    "an environment of conda": {
        "pip_list.txt": "dependencies:\n  - python=3.10.14=h1\n  - pip=24.0\n  - pip:\n      - numpy==1.26.4\n      - torch==2.5.1\n      - torch-npu==2.5.1\n",
        "python.txt": "",
    },
    "counters of a sound port": {
        "hccn.txt": "$ hccn_tool -i 3 -stat -g\npacket statistics:\nmac_rx_pfc_pkt_num:9911\nroce_new_pkt_rty_num:12\nroce_qp_status_err_num:0\n"
    },
    "addresses of all ports": {
        "hccn.txt": "".join(f"$ hccn_tool -i {i} -ip -g\nipaddr:10.1.0.1{i}\nnetmask:255.255.0.0\n" for i in range(2))
    },
    "memory and disks, told in Chinese": {
        "free.txt": "       总计 已用 空闲 共享 缓冲/缓存 可用\n内存： 790000000 60000000 600000000 12000 80000000 680000000\n",
        "df.txt": "文件系统 容量 已用 可用 已用% 挂载点\n/dev/sda2 500G 80G 420G 17% /\n",
    },
    "nodes mapped to a user of the group's number": {
        "ls_dev.txt": dev(mode="crw-rw----").replace("HwHiAiUser HwHiAiUser", "1000 1000"),
        "id.txt": "uid=1001(worker) gid=1001(worker) groups=1001(worker),1000(HwHiAiUser)\n",
    },
    "root with Docker's usual capabilities": {"ls_dev.txt": dev(mode="crw-rw----"), "status.txt": STATUS, "id.txt": ROOT},
    "a device cgroup that allows all": {
        "devices.list": "a *:* rwm\n",
        "proc/1/cgroup": INSIDE,
        "lsmod.txt": "",
        "cat.txt": "root@job:/# cat /proc/self/uid_map\n         0          0 4294967295\n",
    },
    "a device cgroup that allows the nodes": {
        "sys/fs/cgroup/devices/devices.list": "c 1:3 rwm\nc *:* m\nc 236:* rwm\n",
        "proc/1/cgroup": INSIDE,
        "lsmod.txt": "",
    },
    "a host, whose list is not that of the container": {"devices.list": "c 1:3 rwm\n"},
    "a rootless container whose nodes are open to all": {
        "proc/1/cgroup": INSIDE,
        "lsmod.txt": "",
        "ls_dev.txt": dev().replace("HwHiAiUser HwHiAiUser", "nobody nogroup"),
        "proc/self/uid_map": "0 100000 65536\n",
    },
    "nodes that may be opened": {"access.txt": "$ access\n/dev/davinci0 rw: ok\nHOME /root w: ok\nTMPDIR /tmp w: ok\n"},
    "read-only home that nothing needs": {
        "access.txt": "$ access\nHOME / w: Permission denied\nASCEND_WORK_PATH /data w: ok\n",
        "env.txt": environment(ASCEND_WORK_PATH="/data", HOME="/"),
    },
    "read-only mounts beside the work": {"mount.txt": MOUNTS.replace("ro,relatime", "rw,relatime")},
    "one host over the loopback": {"env.txt": environment(HCCL_SOCKET_IFNAME="lo", GLOO_SOCKET_IFNAME="eth0"), "ip.txt": ADDRESSES},
    "two hosts over the right card": {
        "env.txt": environment(HCCL_SOCKET_IFNAME="=eth0", GLOO_SOCKET_IFNAME="eth0", NNODES="2", MASTER_ADDR="10.1.1.7"),
        "ip.txt": ADDRESSES,
    },
    "address of this host": {"env.txt": environment(HCCL_IF_IP="10.1.1.8", NNODES="2"), "ip.txt": ADDRESSES},
    "ports that are reserved": {
        "env.txt": environment(RANK_SIZE="2"),
        "ss.txt": BORROWED,
        "proc/sys/net/ipv4/ip_local_reserved_ports": "60000-60031\n",
    },
    "a card at work": {
        "kernels_8.1.RC1.txt": kernels("ascend910"),
        "npu-smi.txt": sample("07_910_first_generation_busy_hugepages_23.0.txt", ("23.0.rc3", "25.0.rc1.1"), ("23.0.rc2.3", "25.0.rc1.1")),
    },
    "a full card, its processes not copied": {"npu-smi.txt": BUSY},
    "bit errors of the past": {
        "ecc.txt": sample(
            "27_t_ecc_910.txt",
            ("HBM Double Bit Aggregate Total Err Cnt   : 0", "HBM Double Bit Aggregate Total Err Cnt   : 3"),
            ("HBM Double Bit Isolated Pages Count      : 0", "HBM Double Bit Isolated Pages Count      : 3"),
            ("HBM Single Bit Aggregate Total Err Cnt   : 0", "HBM Single Bit Aggregate Total Err Cnt   : 40"),
        )
    },
    "no huge pages on the host": {"hugepages": "HugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n"},
    "a lowered clock without load": {
        "common.txt": SLOW.replace("Aicore Usage Rate(%)           : 6", "Aicore Usage Rate(%)           : 0")
    },
    "full clock under load": {"common.txt": COMMON},
    "stubs behind the driver": {"env.txt": environment(LD_LIBRARY_PATH=f"/usr/local/Ascend/driver/lib64/driver:/{TOOLKIT}/8.1.RC1/devlib")},
    "stubs where programs are built": {
        "env.txt": environment(LD_LIBRARY_PATH=f"/{TOOLKIT}/8.1.RC1/devlib"),
        **dict.fromkeys(
            ("npu-smi.txt", "ls_dev.txt", "lsmod.txt", "usr/local/Ascend/driver/version.info", "usr/local/Ascend/firmware/version.info"), ""
        ),
    },
    "every card of lspci has a node": {"lspci.txt": LSPCI, "ls_dev.txt": dev(*(f"davinci{i}" for i in range(4)), *NODES[2:])},
    "two chips behind one function": {"lspci.txt": LSPCI.split("\n")[0] + "\n"},
    "cards of a container begin anywhere": {
        "ls_dev.txt": dev("davinci0", "davinci3", *NODES[2:]),
        "proc/1/cgroup": INSIDE,
        "lsmod.txt": "",
    },
    "a driver that both files allow": {
        **dict.fromkeys(cann(), ""),
        **cann("8.3.RC2", "8.3.0.2.210", "C23"),
        **driver_of("25.2.1", "C21", "C19,C20,C21,C22", "7.7.0.9.220", "7.0.0,7.8.99", "[25.0,25.0.],[25.2,25.2.]"),
        "npu-smi.txt": smi("25.2.1"),
        "env.txt": environment("8.3.RC2"),
        "pip_list.txt": pip(torch="2.7.1", torch_npu="2.7.1"),
    },
    "board of every card": {
        "boards.txt": "".join(
            f"$ npu-smi info -t board -i {i}\n\tNPU ID           : {i}\n\tFirmware Version : 7.7.0.1.231\n\tCompatibility    : OK\n"
            for i in range(4)
        )
    },
    "rank table of two hosts, this the second": {
        "ls_dev.txt": dev(*(f"davinci{i}" for i in range(4)), *NODES[2:]),
        "etc/hccn.conf": HCCN4,
        "hccl.json": TABLE8,
    },
    "rank table of this host": {
        "ls_dev.txt": dev(*(f"davinci{i}" for i in range(4)), *NODES[2:]),
        "etc/hccn.conf": HCCN4,
        "hccl.json": TABLE4,
    },
    "nothing but npu-smi": {name: "" for name in host() if name != "npu-smi.txt"},
    "nothing but a pip list": {name: "" for name in host() if name != "pip_list.txt"},
    "nothing but an environment": {name: "" for name in host() if name != "env.txt"},
}


@pytest.mark.parametrize("name", WELL)
def test_a_machine_that_is_well_has_no_finding(name: str, tmp_path: Path) -> None:
    verdict = examine(foreign(write_folder(Kind(name, host(**WELL[name])), tmp_path))).verdict
    found = [(f.rule.name, dict(f.values)) for f in (*verdict.findings, *verdict.followed)]
    assert found == []
    assert verdict.exit_code == 0


WHEELS = "$ pip list -v\nPackage Version Location\ntorch 2.5.1 /opt/x\nte 0.4.0 /opt/conda/lib/python3.10/site-packages\n"
SECOND = '"device_ip": "192.168.1.8",\n          "rank_id": "1"'
LISTENS = "$ ss -ltn\nState Recv-Q Send-Q Local Address:Port Peer Address:Port\nLISTEN 0 128 0.0.0.0:60001 0.0.0.0:*\n"
HUGE = "MemTotal: 100000000 kB\nMemAvailable: 20000000 kB\nHugePages_Total: 40000\nHugePages_Free: 40000\nHugepagesize: 2048 kB\n"
FREE = (
    "$ free -m\n              total        used        free      shared  buff/cache   available\n"
    "Mem:         257000      255000         900         100        1100         800\n"
)
HCCN = "address_0=192.168.1.8\nnetmask_0=255.255.255.0\n"
MIXED_CFG = sample("latest_version.cfg_8.1.RC1", ("hccl_running_version=[7.7.0.1.238:8.1.RC1]", "hccl_running_version=[7.6.0.1.220:8.0.0]"))
BASHRC = "alias ll='ls -l'\nsource /usr/local/Ascend/ascend-toolkit/8.1.RC1/set_env.sh\n. /usr/local/Ascend/cann-8.5.1/set_env.sh\n"
FAULTS: Mapping[str, Mapping[str, str]] = {
    "card-did-not-boot": {"dmesg.txt": "[   60.1] [ascend] [devdrv] [devdrv_load_device 123] Load timeout. (dev_id=3; flag_r=0x0)\n"},
    "card-heartbeat-lost": {"dmesg.txt": "[ 6000.1] [ascend] [dms] [f 1] The device urgent heartbeat is lost! (device=2)\n"},
    "driver-package-damaged": {"dmesg.txt": "[   60.1] [ascend] [devdrv] [f 1] Load file check image failed. (dev_id=0)\n"},
    "card-link-lost": {"dmesg.txt": "[   60.1] [ascend] [devdrv] [f 1] Failed to read link status. (dev_id=0)\n"},
    "driver-for-other-kernel": {
        "var/log/ascend_seclog/ascend_install.log": "[ERROR]current kernel primary version(5.10.0-136) is different from the driver(5.10.0-60).\n"
    },
    "npu-smi-driver-broken": {"npu-smi.txt": "dcmi module initialize failed. ret is -8001\n"},
    "npu-smi-fails": {"npu-smi.txt": "dcmi module initialize failed. ret is -8011\n"},
    "npu-smi-hangs": {"npu-smi.txt": "$ npu-smi info\nnpu-smi info: no answer within 5 s\n"},
    "driver-firmware-mismatch": {"board.txt": sample("20_t_board_910_first_generation_23.0.5.txt", (": OK", ": NOK"))},
    "card-unhealthy": {
        "health.txt": "$ npu-smi info -t health -i 2 -c 0\n  Health Status   : Alarm\n  Error Code  : 80818C00\n  Error Information : x\n"
    },
    "card-bit-errors": {"ecc.txt": "$ npu-smi info -i 1 -t ecc\n  NPU ID : 1\n  HBM Double Bit Error Count : 3\n  Chip ID : 0\n"},
    "container-devices-wrong": {"run.sh": RUN.replace("--name w", "-e ASCEND_VISIBLE_DEVICES=3")},
    "container-driver-not-mounted": {"run.sh": RUN.replace("-v /usr/local/Ascend/driver:/usr/local/Ascend/driver", "")},
    "visible-device-absent": {"env.txt": environment(ASCEND_RT_VISIBLE_DEVICES="0,1,2,3")},
    "cann-home-gone": {
        "env.txt": environment("7.0.0", LD_LIBRARY_PATH="/usr/local/Ascend/driver/lib64", PYTHONPATH="", PATH="/bin"),
        "ls_toolkit.txt": f"$ ls -l /{TOOLKIT}\ndrwxr-xr-x 9 root root 4096 Apr 28 20:30 8.1.RC1\n",
    },
    "cann-parts-differ": {f"{TOOLKIT}/8.1.RC1/version.cfg": MIXED_CFG},
    "cann-mixed": {"bashrc": BASHRC},
    "nnal-of-other-version": {"nnal_version.info": "    Ascend-cann-atb : 8.0.RC3\n    Ascend-cann-atb Version : 8.0.RC3.B150\n"},
    "cann-for-other-arch": {"uname.txt": "Linux node1 5.10.0 #1 SMP x86_64 x86_64 x86_64 GNU/Linux\n"},
    "torch-missing": {"pip_list.txt": pip(torch="")},
    "torch-is-cuda-build": {"pip_list.txt": pip(torch="2.5.1+cu121")},
    "framework-cann-mismatch": {"pip_list.txt": pip(torch="2.8.0", torch_npu="2.8.0.post2")},
    "python-not-supported": {"python.txt": "Python 3.13.1\n"},
    "cann-wheels-stale": {"pip_v.txt": WHEELS, "pip_list.txt": ""},
    "cann-python-packages-missing": {"pip_list.txt": pip(decorator="", scipy="")},
    "card-address-twice": {"etc/hccn.conf": HCCN + "address_1=192.168.1.8\n"},
    "card-mtu-differs": {"etc/hccn.conf": HCCN + "mtu_0=1500\nmtu_1=4096\n"},
    "rank-table-of-other-machine": {
        "etc/hccn.conf": HCCN,
        "hccl.json": sample(
            "bad_duplicate_device_ip.json", (SECOND, '"device_ip": "10.9.9.2",\n          "rank_id": "1"'), ("192.168.1.8", "10.9.9.1")
        ),
    },
    "rank-table-address-differs": {"etc/hccn.conf": HCCN4, "hccl.json": TABLE4.replace("192.168.1.12", "192.168.1.93")},
    "card-address-missing": {
        "hccn.txt": "$ hccn_tool -i 0 -ip -g\nipaddr:10.1.0.10\nnetmask:255.255.0.0\n$ hccn_tool -i 1 -ip -g\nipaddr:10.1.0.11\n"
        "netmask:255.255.0.0\n$ hccn_tool -i 2 -ip -g\nhccn_tool cmd execute failed\n"
    },
    "card-packets-lost": {
        "hccn.txt": "$ hccn_tool -i 3 -stat -g\npacket statistics:\nmac_rx_pfc_pkt_num:9911\nroce_new_pkt_rty_num:44120\n"
    },
    "kernels-of-other-version": {
        **{name: "" for name in cann() if "opp_kernel" in name or "kernels" in name},
        "opp_kernel_version.info": sample(
            "opp_kernel_version.info_8.1.RC1", ("8.1.RC1", "8.0.RC3"), ("Version=7.7.0.1.238", "Version=7.5.0.1.129")
        ),
    },
    "firmwares-differ": {
        "boards.txt": "".join(
            f"$ npu-smi info -t board -i {i}\n\tNPU ID           : {i}\n\tSoftware Version : 25.0.rc1.1\n"
            f"\tFirmware Version : {'7.7.0.1.231' if i != 2 else '7.5.0.1.129'}\n\tCompatibility    : OK\n"
            for i in range(4)
        )
    },
    "nodes-differ": {"node2/npu-smi.txt": smi("24.1.rc3")},
    "driver-module-refused": {
        "dmesg.txt": "[ 9.1] drv_pcie_host: disagrees about version of symbol module_layout\n",
        "ls_dev.txt": dev("shm"),
        "lsmod.txt": "",
    },
    "stub-libraries-first": {"ldd.txt": f"$ ldd a.so | grep hal\n\tlibascend_hal.so => {STUB}/libascend_hal.so (0x0000ffff9a1f0000)\n"},
    "card-port-down": {"hccn.txt": "$ hccn_tool -i 3 -link -g\nlink status: DOWN\n"},
    "card-network-unhealthy": {"hccn.txt": "$ hccn_tool -i 3 -net_health -g\nnet health status: Socket fail\n"},
    "card-optics-bad": {"hccn.txt": "$ hccn_tool -i 0 -optical -g\noptical info:\npresent              : not present\n"},
    "network-card-down": {
        "env.txt": environment(GLOO_SOCKET_IFNAME="enp2s0"),
        "ip.txt": "$ ip a\n2: enp2s0: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN group default\n",
    },
    "hccl-port-taken": {"env.txt": environment(RANK_SIZE="8"), "ss.txt": LISTENS},
    "hccl-value-invalid": {"env.txt": environment(HCCL_CONNECT_TIMEOUT="30")},
    "shm-small": {"proc/1/cgroup": INSIDE, "df.txt": "Filesystem Size Used Avail Use% Mounted on\nshm 64M 0 64M 0% /dev/shm\n"},
    "huge-pages-hold-memory": {"proc/meminfo": HUGE},
    "host-memory-low": {"free.txt": FREE},
    "open-files-few": {"ulimit.txt": "$ ulimit -a\nopen files                      (-n) 256\n"},
    "work-folder-relative": {"env.txt": environment(ASCEND_CACHE_PATH="cache")},
    "debug-switch-left-on": {"env.txt": environment(ASCEND_LAUNCH_BLOCKING="1")},
    "user-namespace-hides-owner": {
        "proc/1/cgroup": INSIDE,
        "lsmod.txt": "",
        "ls_dev.txt": dev(mode="crw-rw----").replace("HwHiAiUser HwHiAiUser", "nobody nogroup"),
        "proc/self/uid_map": "         0     100000      65536\n",
        "proc/self/status": STATUS,
        "id.txt": ROOT,
    },
    "seccomp-refuses-threads": {
        "proc/1/cgroup": INSIDE,
        "lsmod.txt": "",
        "proc/self/status": STATUS,
        "access.txt": "$ access\n/dev/davinci0 rw: ok\nclone3: Operation not permitted\n",
    },
    "device-cgroup-refuses": {
        "proc/1/cgroup": INSIDE,
        "lsmod.txt": "",
        "access.txt": "$ access\n/dev/davinci0 rw: Operation not permitted\n/dev/davinci_manager rw: ok\n",
    },
    "root-without-override": {
        "ls_dev.txt": dev(mode="crw-rw----"),
        "status.txt": STATUS.replace("a80425fb", "00000000"),
        "id.txt": ROOT,
    },
    "container-privileged-needless": {"run.sh": RUN.replace("--net=host", "--net=host --privileged")},
    "work-folder-unwritable": {"mount.txt": MOUNTS},
    "host-address-absent": {"env.txt": environment(HCCL_IF_IP="10.9.9.9"), "ip.txt": ADDRESSES},
    "host-card-local": {"env.txt": environment(NNODES="2", MASTER_ADDR="10.1.1.7"), "ip.txt": ADDRESSES},
    "socket-cards-differ": {"env.txt": environment(HCCL_SOCKET_IFNAME="eth0", GLOO_SOCKET_IFNAME="eth1"), "ip.txt": ADDRESSES},
    "host-mtu-differs": {"env.txt": environment(HCCL_SOCKET_IFNAME="eth", NNODES="2"), "ip.txt": ADDRESSES},
    "hccl-port-borrowed": {
        "env.txt": environment(RANK_SIZE="2"),
        "ss.txt": BORROWED,
        "proc/sys/net/ipv4/ip_local_reserved_ports": "8080\n",
    },
    "glibc-too-old": {
        "ldd.txt": "$ ldd --version\nldd (Ubuntu GLIBC 2.27-3ubuntu1.6) 2.27\n",
        "pip_list.txt": pip(torch="2.6.0", torch_npu="2.6.0"),
    },
    "libstdcxx-too-old": {
        "strings.txt": "$ strings /usr/lib64/libstdc++.so.6\nGLIBCXX_3.4\nGLIBCXX_3.4.9\nGLIBCXX_3.4.19\n",
        "needs.txt": "$ needs-glibcxx\n/x/libascendcl.so needs GLIBCXX_3.4.22\n",
    },
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_with_its_line(name: str, tmp_path: Path) -> None:
    found = {f.name: f for f in facts(foreign(write_folder(Kind(name, host(**FAULTS[name])), tmp_path)))}
    assert name in found, sorted(found)
    assert found[name].evidence and found[name].evidence[0].text, "a fact quotes a line"


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_becomes_the_finding_of_its_rule(name: str, tmp_path: Path) -> None:
    verdict = examine(foreign(write_folder(Kind(name, host(**FAULTS[name])), tmp_path))).verdict
    assert f"machine-{name}" in [f.rule.name for f in (*verdict.findings, *verdict.followed)]
    for lang in ("en", "zh"):
        for finding in verdict.findings:
            assert "{" not in finding.what(lang).replace("${", ""), finding.what(lang)


def test_every_rule_of_a_machine_asks_for_a_fact_that_a_check_makes() -> None:
    source = "".join(p.read_text(encoding="utf-8") for p in (Path(__file__).resolve().parents[3] / "src/jumar/tools/doctor").rglob("*.py"))
    asked = [p.removeprefix("fact:") for rule in load_rules() if rule.file.startswith("machine") for p in rule.match]
    assert [name for name in asked if f'"{name}"' not in source] == []


FIRST = {
    **driver_of("24.1.0.3", "C19", "C13,C15,C17,C18,C19", "7.5.0.5.220", "7.0.0,7.6.99", "[24.0,24.0.],[24.1,24.1.]"),
    "npu-smi.txt": sample("06_910_first_generation_named_910B_24.1.0.3.txt"),
    "kernels_8.1.RC1.txt": "",
}


@pytest.mark.parametrize(
    "more",
    [
        {"kernels.txt": "ascend910b\n"},
        {f"{TOOLKIT}/8.1.RC1/{KERNELS}/ascend910b/add.json": "{}"},
        {
            "packages.txt": "$ ls -l /root/packages\n-rw-r--r-- 1 root root 9 Nov  3 10:00 Ascend-cann-kernels-910b_8.1.RC1_linux-aarch64.run\n"
        },
        {"env.txt": environment(SOC_VERSION="ascend910b1")},
        {"pip_list.txt": pip(vllm_ascend="0.9.1")},
        {"run.sh": RUN.replace("ascendai/cann:8.1.rc1", "ascendai/cann:8.1.rc1-910b-ubuntu22.04-py3.10")},
        {"atc.log": "atc --model=a.onnx --framework=5 --soc_version=Ascend910B3 --output=a\nATC run failed\n"},
    ],
    ids=["listing", "tree", "package", "variable", "vllm-ascend", "image", "atc"],
)
def test_a_first_generation_910_is_not_taken_for_a2_whatever_shows_it(more: Mapping[str, str], tmp_path: Path) -> None:
    verdict = examine(foreign(write_folder(Kind("first", host(**FIRST, **more)), tmp_path))).verdict
    assert verdict.findings[0].rule.name == "machine-first-generation-taken-for-a2"


def test_a_second_set_env_shows_where_the_version_of_latest_is_not_known(tmp_path: Path) -> None:
    files = host(**cann("8.0.RC3", "7.5.0.1.129", "C19"), **{"env.txt": environment("latest", libraries="8.0.RC3")})
    verdict = examine(foreign(write_folder(Kind("latest", files), tmp_path))).verdict
    assert verdict.findings[0].rule.name == "machine-cann-mixed"


def test_device_files_of_an_archive_are_nodes_with_their_rights(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "dev.tar", "w") as out:
        for name in ("davinci0", "davinci_manager"):
            info = tarfile.TarInfo(f"dev/{name}")
            info.type, info.mode, info.uname, info.gname = tarfile.CHRTYPE, 0o660, "HwHiAiUser", "HwHiAiUser"
            out.addfile(info)
    entry = foreign(tmp_path / "dev.tar").listings["/dev"].entry("davinci0")
    assert entry is not None
    assert (entry.mode, entry.owner) == ("crw-rw----", "HwHiAiUser")


@pytest.mark.parametrize(
    "driver_version, release, rule",
    [
        ("22.0.4", "8.1.RC1", "machine-driver-too-old-for-cann"),
        ("24.1.rc3", "8.5.1", "machine-driver-too-old-for-cann"),
        ("23.0.rc3", "8.1.RC1", "machine-driver-too-old-for-cann"),  # a candidate: of an older branch than 23.0.0
        ("23.0.0", "8.1.RC1", "machine-driver-older-than-tested"),
        ("24.1.rc3", "8.5.0", "machine-driver-too-old-for-cann"),
        ("23.0.0", "8.0.RC3", "machine-driver-too-old-for-cann"),
        ("24.1.rc3", "8.1.RC1", ""),
        ("25.0.rc1.1", "8.1.RC1", ""),
        ("25.3.rc1", "8.3.RC2", ""),
    ],
)
def test_a_driver_is_judged_by_the_table_where_only_its_version_is_known(
    driver_version: str, release: str, rule: str, tmp_path: Path
) -> None:
    info = sample("ascend_toolkit_install.info_8.1.RC1", ("8.1.RC1", release))
    files = {"npu-smi.txt": smi(driver_version), "cann.txt": info}
    verdict = examine(foreign(write_folder(Kind("old", files), tmp_path))).verdict
    assert [f.rule.name for f in verdict.findings] == ([rule] if rule else [])


@pytest.mark.parametrize(
    "more",
    [
        {"npu-smi.txt": "DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\ndcmi module initialize failed. ret is -8005\n"},
        {"env.txt": environment(HOSTNAME="4f1c2ab3d4e5"), "npu-smi.txt": ""},
        {"env.txt": environment(ASCEND_VISIBLE_DEVICES="0"), "npu-smi.txt": "bash: npu-smi: command not found\n"},
        {".dockerenv": " ", "npu-smi.txt": ""},
    ],
    ids=["-8005", "host name", "visible devices", "dockerenv"],
)
def test_a_container_is_known_by_what_is_copied_where_nothing_names_it(more: Mapping[str, str], tmp_path: Path) -> None:
    files = host(**{"ls_dev.txt": NOT_MAPPED, "lsmod.txt": "", **more})
    verdict = examine(foreign(write_folder(Kind("container", files), tmp_path))).verdict
    assert verdict.findings[0].rule.name == "machine-container-nodes-missing"


@pytest.mark.parametrize("word", ["NOK", "NG", "NOT OK", "MISMATCH", "Incompatible"])
def test_any_compatibility_but_ok_is_a_pair_that_does_not_fit(word: str, tmp_path: Path) -> None:
    board = sample("20_t_board_910_first_generation_23.0.5.txt", (": OK", f": {word}"))
    verdict = examine(foreign(write_folder(Kind("board", host(**{"board.txt": board})), tmp_path))).verdict
    assert "machine-driver-firmware-mismatch" in [f.rule.name for f in verdict.findings]
    assert word in "".join(e.text for f in verdict.findings for e in f.evidence)


def test_firmware_that_only_npu_smi_states_is_a_component(tmp_path: Path) -> None:
    (tmp_path / "board.txt").write_text(sample("20_t_board_910_first_generation_23.0.5.txt"))
    assert ("firmware", "7.1.0.7.220") in [(c.name, c.value) for c in examine(foreign(tmp_path)).verdict.components]


def test_cards_that_a_whole_table_lacks_are_found_for_any_environment(tmp_path: Path) -> None:
    (tmp_path / "smi.txt").write_text(smi())
    (tmp_path / "env.sh").write_text("export ASCEND_RT_VISIBLE_DEVICES=0,1,2,3\n")
    assert "machine-visible-device-absent" in [f.rule.name for f in examine(foreign(tmp_path)).verdict.findings]


def test_a_card_at_work_is_a_note_beside_a_torch_that_does_not_fit(tmp_path: Path) -> None:
    held = (
        smi()
        .replace("3373 / 65536", "63373/ 65536")
        .replace(
            "| No running processes found in NPU 0                                                            |",
            "| 0       0                 | 4711          | python                   | 60000                   |",
        )
    )
    files = host(**{"npu-smi.txt": held, "pip_list.txt": pip(torch="2.1.0", torch_npu="2.5.1")})
    verdict = examine(foreign(write_folder(Kind("held", files), tmp_path))).verdict
    assert [f.rule.name for f in verdict.findings] == ["machine-torch-npu-for-other-torch"]
    assert "63373 of 65536 MB" in verdict.notes[0]
    assert "python (pid 4711)" in verdict.notes[0]


def test_of_docker_inspect_the_line_of_the_devices_is_shown_and_nodes_are_named(tmp_path: Path) -> None:
    text = """[
    {
        "Id": "abc",
        "Name": "/train",
        "Config": {"Image": "ascendai/cann:8.1.rc1", "Env": []},
        "HostConfig": {
            "Privileged": false,
            "Devices": [
                {"PathOnHost": "/dev/davinci0", "PathInContainer": "/dev/davinci0", "CgroupPermissions": "rwm"}
            ]
        },
        "Mounts": []
    }
]
"""
    (tmp_path / "inspect.json").write_text(text)
    verdict = examine(foreign(tmp_path)).verdict
    first = verdict.findings[0]
    assert first.rule.name == "machine-container-nodes-missing"
    assert "/dev/davinci0" in first.evidence[0].text
    assert "without /dev/davinci_manager, /dev/devmm_svm, /dev/hisi_hdc" in first.what("en")
    assert "Nothing in these files" not in verdict.machine


def test_a_health_answer_belongs_to_the_card_that_was_asked_for(tmp_path: Path) -> None:
    alarm = smi().replace("| OK            | 97.8", "| Alarm         | 97.8")
    (tmp_path / "all.log").write_text(
        f"[root@n1 ~]# npu-smi info\n{alarm}\n"
        "[root@n1 ~]# npu-smi info -t health -i 0\n\tHealth Status    : OK\n\tError Code       : NA\n\tError Information: NA\n"
        "[root@n1 ~]# npu-smi info -t health -i 1\n\tHealth Status    : Alarm\n\tError Code       : 80E01801\n\tError Information: node type=HBM\n"
    )
    verdict = examine(foreign(tmp_path)).verdict
    assert "Card 1 (910B1) is not healthy: Alarm, event codes 80E01801; node type=HBM" in verdict.findings[0].what("en")
    assert verdict.findings[0].evidence[0].text.split()[1:3] == ["1", "910B1"]
    assert "80E01801" in verdict.findings[0].evidence[1].text


@pytest.mark.parametrize(
    "loop", ["for i in {0..1}; do sudo npu-smi info -t health -i $i; done", "for i in 0 1; do npu-smi info -i $i -t health; done"]
)
def test_a_loop_over_the_cards_tells_whose_answer_each_is(loop: str, tmp_path: Path) -> None:
    answers = "\tHealth Status    : OK\n\tError Code       : NA\n" + "\tHealth Status    : Warning\n\tError Code       : 80818C00\n"
    (tmp_path / "all.log").write_text(f"zhao@n1:~$ {loop}\n{answers}zhao@n1:~$ npu-smi info\n{smi()}\n")
    first = examine(foreign(tmp_path)).verdict.findings[0]
    assert "Card 1" in first.what("en")
    assert first.evidence[0].text == "Health Status    : Warning"


def test_a_fault_event_of_the_kernel_log_is_told_with_its_code_and_is_no_hanging_scheduler(tmp_path: Path) -> None:
    line = "[93321.1] [ascend] [devdrv] devdrv_imu_mbx3_notifier  Get mntn message. (exception_id=0x80E01801; dev_id=3)\n"
    verdict = examine(foreign(write_folder(Kind("event", host(**{"dmesg.txt": line})), tmp_path))).verdict
    assert verdict.findings[0].rule.name == "machine-card-unhealthy"
    assert "Card 3" in verdict.findings[0].what("en")
    assert "80E01801" in verdict.findings[0].what("en")


def test_a_card_that_lost_its_heartbeat_explains_the_missing_node(tmp_path: Path) -> None:
    files = host(**{"ls_dev.txt": dev("davinci0", "davinci2", *NODES[2:]), **FAULTS["card-heartbeat-lost"]})
    verdict = examine(foreign(write_folder(Kind("lost", files), tmp_path))).verdict
    assert verdict.findings[0].rule.name == "machine-card-heartbeat-lost"
    assert "machine-card-gone" in [f.rule.name for f in verdict.followed]


def test_several_faults_of_a_rank_table_are_told_together(tmp_path: Path) -> None:
    wrong = TABLE4.replace('"server_count": "1"', '"server_count": "2"').replace("192.168.1.12", "192.168.1.13")
    verdict = examine(foreign(write_folder(Kind("table", {"hccl.json": wrong, "npu-smi.txt": smi()}), tmp_path))).verdict
    assert "server_count" in verdict.findings[0].what("en")
    assert "192.168.1.13" in verdict.findings[0].what("en")


@pytest.mark.parametrize(
    "who",
    [
        "$ id\n用户id=1002(li) 组id=1002(li) 组=1002(li)\n",
        "$ id\nuid=1002(li) gid=1002(li) groups=1002(li)\n",
        "$ id\nuid=1002(li) gid=1002(li) 组=1002(li)\n",
        "$ whoami\nli\n$ groups\nli wheel\n",
    ],
)
def test_a_user_outside_of_the_group_is_known_however_the_system_tells_it(who: str, tmp_path: Path) -> None:
    nodes = "$ ls -l /dev/davinci*\ncrw-rw---- 1 HwHiAiUser HwHiAiUser 236, 0 11月 20 09:12 /dev/davinci0\n"
    (tmp_path / "user.log").write_text(f"{who}{nodes}", encoding="utf-8")
    verdict = examine(foreign(tmp_path)).verdict
    assert verdict.findings[0].rule.name == "machine-device-nodes-permission"
    assert "usermod -a -G HwHiAiUser li" in verdict.findings[0].fix("en")[0]


def test_a_python_that_does_not_fit_is_told_with_both_products_by_name(tmp_path: Path) -> None:
    verdict = examine(foreign(write_folder(Kind("python", host(**FAULTS["python-not-supported"])), tmp_path))).verdict
    assert (
        verdict.findings[0].what("en").startswith("Python 3.13.1 and torch_npu 2.5.1 do not go together: the table names Python 3.9-3.11.")
    )


def test_an_exported_environment_names_packages_and_python(tmp_path: Path) -> None:
    (tmp_path / "env.yml").write_text(
        "name: a\ndependencies:\n  - python=3.10.14=h1\n  - pip=24.0\n  - pip:\n      - torch==2.4.0\n      - torch-npu==2.5.1\n"
    )
    machine = foreign(tmp_path)
    assert machine.identity.python is not None
    assert machine.identity.python.value == "3.10.14"
    assert [f.name for f in facts(machine) if f.name == "torch-npu-for-other-torch"] == ["torch-npu-for-other-torch"]


def test_of_a_kernel_log_the_rules_read_what_the_driver_and_the_killer_say(tmp_path: Path) -> None:
    (tmp_path / "npu-smi.txt").write_text(smi())
    killed = "[ 9.2] Out of memory: Killed process 41233 (python) total-vm:331120000kB, anon-rss:251120000kB\n"
    (tmp_path / "dmesg.txt").write_text(f"[ 8.1] EXT4-fs error (device sdb1): No space left on device\n{killed}")
    verdict = examine(foreign(tmp_path)).verdict
    assert verdict.layer == "memory"
    assert [(e.source, e.line) for e in verdict.findings[0].evidence][:1] == [("dmesg.txt", 2)]


def test_a_library_of_npu_smi_that_a_container_lacks_was_not_mounted(tmp_path: Path) -> None:
    said = "npu-smi: error while loading shared libraries: libdcmi.so: cannot open shared object file: No such file or directory"
    (tmp_path / "x.log").write_text(f"root@c:/# npu-smi info\n{said}\nroot@c:/# cat /proc/1/cgroup\n0::/docker/4f1c\n")
    verdict = examine(foreign(tmp_path)).verdict
    assert verdict.layer == "container"
    assert "/usr/local/dcmi" in verdict.findings[0].what("en")


def test_devices_of_a_rank_table_are_those_of_this_host(tmp_path: Path) -> None:
    files = host(
        **{
            "ls_dev.txt": dev(*(f"davinci{i}" for i in range(4)), *NODES[2:]),
            "hccl.json": TABLE4.replace('"device_id": "3"', '"device_id": "7"'),
        }
    )
    verdict = examine(foreign(write_folder(Kind("absent", files), tmp_path))).verdict
    assert verdict.findings[0].rule.name == "machine-rank-table-bad"
    assert "got 7" in verdict.findings[0].what("en")


def test_a_path_of_another_release_beside_latest_is_a_mixture_though_one_release_is_known(tmp_path: Path) -> None:
    env = environment("latest", ASCEND_OPP_PATH=f"/{TOOLKIT}/7.0.0/opp")
    verdict = examine(foreign(write_folder(Kind("opp", host(**{"env.txt": env})), tmp_path))).verdict
    assert verdict.findings[0].rule.name == "machine-cann-mixed"
    assert "7.0.0: ASCEND_OPP_PATH" in verdict.findings[0].what("en")
