"""What tells whose machine it was goes, the same everywhere; what tells what is wrong with it stays."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.tools.diagnose.diagnose import diagnose_text
from jumar.tools.doctor.neutralise import Neutral, neutralised
from jumar.tools.knowledge import load_rules
from jumar.tools.verdict import Verdict

CASES = Path(__file__).resolve().parents[3] / "../shared/cases/public"


def clean(text: str, **known: list[str]) -> str:
    return neutralised({"log": text}, **known)[0]["log"]


def told(v: Verdict) -> tuple[object, ...]:
    """What must not change."""
    return ([f.rule.name for f in v.findings], [f.rule.name for f in v.followed], v.layer, v.confidence, [d.text for d in v.codes], v.lines)


# ------------------------------------------------------------------------------ what stays


def test_every_example_of_every_rule_keeps_its_verdict() -> None:
    changed = [
        rule.name
        for rule in load_rules()
        for example in (*rule.examples, *rule.others)
        if (text := clean(example)) != example and told(diagnose_text(text)) != told(diagnose_text(example))
    ]
    assert changed == []


@pytest.mark.skipif(not CASES.is_dir(), reason="the field cases are not here")
def test_field_cases_keep_their_verdict() -> None:
    for file in sorted(CASES.glob("*.json")):
        case = json.loads(file.read_text())
        text = clean(case["input"])
        assert text.count("\n") == case["input"].count("\n")
        assert told(diagnose_text(text, case["environment"])) == told(diagnose_text(case["input"], case["environment"])), case["id"]


@pytest.mark.parametrize(
    "line",
    [
        "| npu-smi 25.0.3.1                 Version: 25.0.3.1                                            |",
        "Software Version                 : 24.1.0.3",
        "driver 23.0.2.1 -> 25.0.3.1, firmware 7.5.0.1.129",
        "toolkit_running_version=[7.7.0.1.238:8.1.RC1]",
        "Ascend-hdk-910b-npu-driver_24.1.0.3_linux-aarch64.run",
        "Linux localhost 5.10.0-60.18.0.50.oe2203.aarch64 #1 SMP",
        "2025-03-01-11:23:25.123.456 [hccl] rank[3] error code is 507018, 0x7020023, E19999, retCode=0x7110010",
        "[rank3]: RuntimeError: max_tokens=4096 num_tokens: 128 eos_token='</s>' pad_token_id: 0 token_ids=[1, 2]",
        "KeyError: 'model.layers.0'  y = x[0::2]  std::vector<at::Tensor>  c10::Error  ab::cd",
        "bind 0.0.0.0:29500, loopback 127.0.0.1, mask 255.255.255.0, ::1 and :: and 224.0.0.1",
        "first generation 24.1.0.3 on openEuler 22.03 LTS 5.10.0-60.18.0.50",
        "bus 0000:C1:00.0, /root/ascend/log, /home/HwHiAiUser, drwxr-x--- 2 HwHiAiUser HwHiAiUser 4096 Mar 1 11:23 lib64",
        "TOKENIZERS_PARALLELISM=false  VLLM_MAX_NUM_BATCHED_TOKENS=8192  PWD=/root",
        "error from device(chipId:0, dieId:0), serial number is 789",
        "pod llama-train-worker-0 of namespace vcjob, container k8s_llama_7f9c",
        "   0: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000",
        "Serial Number                  : 0000000000000000",
        "torch.nn.functional self.net torch.distributed.launch threading.local libfoo.so.1 torch_npu.npu.cn_ops model.com()",
        "root@7c1f0a9b2d3e:/app# npu-smi info",
        "docker pull swr.cn-north-4.myhuaweicloud.com/ascend/cann:8.1 quay.io/ascend/vllm-ascend:v0.9.1",
        "torch_npu.npu.utils.de np.random.uk model.backbone.net host.io",
        "@torch.jit.script  @click.command  y = x@w.t()",
        "https://mirrors.tuna.tsinghua.edu.cn/simple https://www.hiascend.com/x git clone https://gitee.com/ascend/pytorch.git",
        "Tried to allocate 17179869184 bytes, ls /nas/models/qwen2 /mnt/nas/datasets",
        "内存 17179869184 字节, offset=13812345678, contact the admin",
        "[core.py:632] rank0: Traceback, worker-1: [ERROR] node0 is lost, connect to rank 3 failed, of user defined operator",
        "shape sk=1024 ak: 128, sk=(1, 2), tcp://localhost:29500 [::]:29500 --master_addr 127.0.0.1 MASTER_ADDR=localhost",
        "layer3: [ERROR] x; host: 0.0.0.0; on the host side, connect to server failed, server is down, node is not ready",
        "drwxr-xr-x 2 root docker 4096 Mar 1 11:23 x; chown -R HwHiAiUser:HwHiAiUser /dev/davinci0; uid=0(root) groups=0(root),999(docker)",
        "https://github.com/vllm-project/vllm.git mirrors.aliyun.com https://huggingface.co:443/a docker run quay.io/ascend/vllm-ascend:v0.9.1",
    ],
)
def test_a_line_that_names_nobody_stays_as_it_is(line: str) -> None:
    assert clean(line) == line


def test_a_user_whose_name_is_a_word_of_the_field_does_not_change_other_lines() -> None:
    text = "[data@model ~]$ cat\nuser home /home/data\nGetNext timed out: the data queue of the model is empty"
    assert clean(text) == "[user1@host1 ~]$ cat\nuser home /home/user1\nGetNext timed out: the data queue of the model is empty"


# ------------------------------------------------------------------------------ what goes


@pytest.mark.parametrize(
    "line, wanted",
    [
        ("/home/zhangsan/run.py and zhangsan_lora", "/home/user1/run.py and user1_lora"),
        (r"C:\Users\Li Wei\x", r"C:\Users\user1 Wei\x"),
        ("lisi@npu-17:~/work$ env\nnpu-17: rank 0", "user1@host1:~/work$ env\nhost1: rank 0"),
        ("[root@ascend-01 ~]# npu-smi info", "[root@host1 ~]# npu-smi info"),
        ("Linux ascend-01 5.10.0 #1\nascend-01 down", "Linux host1 5.10.0 #1\nhost1 down"),
        ("uid=1001(wang5) gid=1001(wang5)", "uid=1001(user1) gid=1001(user1)"),
        ("10.1.2.3 to 10.1.2.4, 10.1.2.3:22, worker_10.1.2.3.log", "192.0.2.1 to 192.0.2.2, 192.0.2.1:22, worker_192.0.2.1.log"),
        ("address_0=192.168.100.101\nnetmask_0=255.255.255.0", "address_0=192.0.2.1\nnetmask_0=255.255.255.0"),
        ("peer 24.1.0.3:60000 and host 23.1.2.3", "peer 192.0.2.1:60000 and host 198.51.100.1"),
        ("ip 8.8.8.8 and 114.114.114.114", "ip 192.0.2.1 and 198.51.100.1"),
        ("fe80::9a03:9bff:fe12:3456%eth0", "2001:db8::1%eth0"),
        ("mac 98:03:9b:12:34:56", "mac 02:00:00:00:00:01"),
        ("mail li.wei@huawei.com", "mail mail1@example.org"),
        ("Serial Number : 2102313ABC", "Serial Number : SERIAL-1"),
        ("| VDie ID : 12345678 9ABCDEF0 |", "| VDie ID : SERIAL-1 |"),
        ("License number: AB-1234-CD", "License number: LICENCE-1"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-0000-4000-8000-000000000001"),
        ("https_proxy=http://bob:pw1@proxy.corp.com:8080", "https_proxy=http://proxy.example.org:8080"),
        ("no_proxy=10.0.0.0/8,.corp.com", "no_proxy=HIDDEN"),
        ("git clone https://bob:pw1@git.corp.com/x.git", "git clone https://SECRET-1@site1.example.org/team/project1.git"),
        ("curl -H 'Authorization: Bearer abc.def-123'", "curl -H 'Authorization: SECRET-1'"),
        ('{"access_token": "abc", "error": "EI0002"}', '{"access_token": "SECRET-1", "error": "EI0002"}'),
        ('{"Cmd": ["serve", "--api-key", "ab", "--max-tokens", "9"]}', '{"Cmd": ["serve", "--api-key", "SECRET-1", "--max-tokens", "9"]}'),
        ("password: a\"b'c;d", "password: SECRET-1"),
        ("run --password a'b;c --x 1", "run --password SECRET-1 --x 1"),
        ('{"token":null,"error":"EI0002"}', '{"token":null,"error":"EI0002"}'),
        ("DB_PASSWORD=my pass word\nnext", "DB_PASSWORD=SECRET-1\nnext"),
        ("   1: 0A02000A:0016 00000000:0000 0A", "   1: 010200C0:0016 00000000:0000 0A"),
        ("10.1.1.7:/export /home nfs4 rw", "192.0.2.1:/export /home nfs4 rw"),
        ("[root@host3 ~]# ls\nhost3.corp.example-bank.com is up", "[root@host1 ~]# ls\nhost1.example.org is up"),
        ("[a@gpu-node-17 ~]$ ls\ngpu-node-17 gpu-node-18", "[user1@host1 ~]$ ls\nhost1 host2"),
        ("see gitlab.corp.com/team/secret-proj.git", "see site1.example.org/team/project1.git"),
        ("proxy=http://bob:pw17@proxy.corp.com:8080", "proxy=http://SECRET-1@site1.example.org:8080"),
        ("wandb: login key 0123456789abcdef0123456789abcdef01234567", "wandb: login key SECRET-1"),
        ("modelscope token ms-0123abcd-1234-5678-9abc-def012345678", "modelscope token SECRET-1"),
        ("https://hooks.slack.com/services/T000/B000/Xab1", "https://hooks.slack.com/services/SECRET-1"),
        ("数据库密码：abc123456 用户：张三 工号 00512345", "数据库密码：SECRET-1 用户：user1 工号 STAFF-1"),
        ("call +86 138 1234 5678, 电话：010-1234-5678", "call PHONE-1, 电话：PHONE-2"),
        ("id 11010519491231002X", "id PERSON-1"),
        ("ping db01.prod.mybank.net", "ping site1.example.org"),
        ("docker pull harbor.mybank.com.cn/ai/llm:v2", "docker pull site1.example.org/ai/llm:v2"),
        ("wandb login key: abcdef1234567890", "wandb login key: SECRET-1"),
        ("联系人 王五 13987654321", "联系人 user1 PHONE-1"),
        ("From https://code.bank.com/team/repo\n", "From https://site1.example.org/team/project1\n"),
        ("View run at https://wandb.ai/bank-ai/secret-proj/runs/abc", "View run at https://wandb.ai/team/project1/runs/abc"),
        ("logged in as: zhangsan (bankai)", "logged in as: user1 (user2)"),
        ("cd /data/users/wangwu/x; ls /mnt/nas/zhangsan", "cd /data/users/user1/x; ls /mnt/nas/user2"),
        ("SERIAL: 2102313ABCD\nserial=2102313ABCDE", "SERIAL: SERIAL-1\nserial=SERIAL-2"),
        ("fileserver2:/export /data nfs4 rw\nfileserver2 is away", "host1:/export /data nfs4 rw\nhost1 is away"),
        ("OBS_AK=QWERTYUIOP1234 OBS_SK=abcdef123456", "OBS_AK=SECRET-1 OBS_SK=SECRET-2"),
        ("moxing: ak=HPUAQWERTY12345678 sk=zxcvb1", "moxing: ak=SECRET-1 sk=SECRET-2"),
        ('{"ak": "QWER12", "sk": "TYUI34"}', '{"ak": "SECRET-1", "sk": "SECRET-2"}'),
        ("curl -k -u admin:adminPw99 https://10.1.1.7/api", "curl -k -u admin:SECRET-1 https://192.0.2.1/api"),
        ("mysql -h db -uroot -pR00tPwX prod", "mysql -h db -uroot -pSECRET-1 prod"),
        ("docker login -u me -p dockPw22 quay.io", "docker login -u me -p SECRET-1 quay.io"),
        ("echo dockPw22 | docker login -u me --password-stdin quay.io", "echo SECRET-1 | docker login -u me --password-stdin quay.io"),
        ("sshpass -p sshPw21 ssh root@loginbox3 ls", "sshpass -p SECRET-1 ssh root@host1 ls"),
        ("redis-cli -h x -a Pw23456", "redis-cli -h x -a SECRET-1"),
        ("wandb login 27abcdefabcdef0123456789abcdef0123456789", "wandb login SECRET-1"),
        ("failed to connect to [trainbox03]:29500 (errno: 110)", "failed to connect to [host1]:29500 (errno: 110)"),
        ("torchrun --master_addr trainbox23 --master_port 6000", "torchrun --master_addr host1 --master_port 6000"),
        ("--master-addr=trainbox24 rdzv_endpoint='trainbox25:29400'", "--master-addr=host1 rdzv_endpoint='host2:29400'"),
        ("[a.cc:1] hostname[trainbox02] remote_host[trainbox03]", "[a.cc:1] hostname[host1] remote_host[host2]"),
        ("  time      : 2025\n  host      : trainbox04\n", "  time      : 2025\n  host      : host1\n"),
        ("srun: error: trainbox13: task 0: Exited", "srun: error: host1: task 0: Exited"),
        ("slurmstepd: error: *** STEP 12.0 ON gpu14 CANCELLED AT 10", "slurmstepd: error: *** STEP 12.0 ON host1 CANCELLED AT 10"),
        ("SLURM_NODELIST=gz-alpha[07-09,11]\ngz-alpha09 is down", "SLURM_NODELIST=host1,host2,host3,host4\nhost3 is down"),
        ("SLURM_SUBMIT_HOST=loginbox3\nloginbox3", "SLURM_SUBMIT_HOST=host1\nhost1"),
        ("scp a root@trainbox20:/data; pdsh: trainbox21: ok", "scp a root@host2:/data; pdsh: host1: ok"),
        ("ssh: connect to host loginbox3 port 22: refused", "ssh: connect to host host1 port 22: refused"),
        ("tcp://trainbox16:29500 HOSTFILE: trainbox25 slots=8", "tcp://host2:29500 HOSTFILE: host1 slots=8"),
        ("mpirun -H trainbox1:8,trainbox2:8 python", "mpirun -H host1:8,host2:8 python"),
        ("pod/train-0 on node/trainbox18 evicted", "pod/train-0 on node/host1 evicted"),
        ("lookup falcon-0.team-x.svc.cluster.local: no such host", "lookup host1.host2.svc.cluster.local: no such host"),
        ("Started Session 12 of user wangfang.\nwangfang", "Started Session 12 of user user1.\nuser1"),
        ("owner drwxr-x--- 2 wangfang moonteam 40 x\nmoonteam", "owner drwxr-x--- 2 user1 group1 40 x\ngroup1"),
        ("uid=7(wangfang) gid=7(wangfang) groups=7(wangfang),2(moonteam)", "uid=7(user1) gid=7(user1) groups=7(user1),2(group1)"),
        ("# jumar\ngroups = 7 wangfang 0 root\nuser = wangfang", "# jumar\ngroups = 7 user1 0 root\nuser = user1"),
        ("chown -R wangfang:moonteam /x; su - lixiang9", "chown -R user2:group1 /x; su - user1"),
        ("wangfang 2201 99.0 12.1 12345 678 ? Rl 10:00 1:00 python", "user1 2201 99.0 12.1 12345 678 ? Rl 10:00 1:00 python"),
        ("ls /data1/wangfang/x /data/models/qwen/", "ls /data1/user1/x /data/models/qwen/"),
        ("mail a.b@c.com and 13812345678 (张伟 z00412345)", "mail mail1@example.org and PHONE-1 (user1 STAFF-1)"),
        ("作者: 张伟\n张伟 工号 z00412345, z00412345", "作者: user1\nuser1 工号 STAFF-1, STAFF-1"),
        ("'https://oauth2:ghp_abcdefghij12@github.com/acme/moon.git/'", "'https://SECRET-2@github.com/team/project1.git/'"),
        ("at https://wandb.acme.cn/moon-team/falcon/runs/a1", "at https://site1.example.org/team/project1/runs/a1"),
        ("docker run registry.acme.cn:5000/moonshot/mindie:2.0", "docker run site1.example.org:5000/image1/mindie:2.0"),
        ("postgres://u:pw@db.acme.cn:5432/x", "postgres://SECRET-1@site1.example.org:5432/x"),
    ],
)
def test_what_names_somebody_gets_a_stand_in(line: str, wanted: str) -> None:
    assert clean(line) == wanted


def test_a_private_key_goes_and_its_lines_stay() -> None:
    text = "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nQUJD\n-----END RSA PRIVATE KEY-----\nb"
    found = clean(text)
    assert "MIIE" not in found and "QUJD" not in found
    assert found.split("\n")[-1] == "b" and found.count("\n") == text.count("\n")


def test_one_name_is_the_same_in_every_text_and_in_the_names_of_files() -> None:
    texts, counts = neutralised({"logs/zhaoliu.log": "no home here, 10.0.0.7", "env": "HOME=/home/zhaoliu\nMASTER_ADDR=10.0.0.7"})
    assert texts == {"logs/user1.log": "no home here, 192.0.2.1", "env": "HOME=/home/user1\nMASTER_ADDR=192.0.2.1"}
    assert counts == {"ipv4": 1, "user": 1}


def test_two_ranks_stay_two_and_one_network_stays_one() -> None:
    found = [clean(" ".join(f"10.{a}.{b}.{c}" for a in range(2) for b in range(5) for c in range(1, 255)))]
    addresses = found[0].split()
    assert len(set(addresses)) == 2 * 5 * 254
    assert len({a.rpartition(".")[0] for a in addresses}) == 10


def test_a_secret_that_is_named_once_goes_everywhere() -> None:
    texts, _ = neutralised({"env": "WANDB_API_KEY=q8w7e6r5t4y3", "log": "logging in with q8w7e6r5t4y3 ..."})
    assert "q8w7e6r5t4y3" not in "".join(texts.values())


LETTERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"
SECRET = st.from_regex(rf"\A[{LETTERS}]{{4}}[0-9]{{3}}[{LETTERS}0-9]{{12,30}}\Z")
FORMS = st.sampled_from(
    [
        "HF_TOKEN={}",
        "export AWS_SECRET_ACCESS_KEY='{}'",
        'declare -x MY_CREDENTIAL="{}"',
        "password: {}",
        "passwd={}",
        '"api_key": "{}"',
        "{{'secret': '{}'}}",
        'auth_token = "{}"',
        "access-key={}",
        "--token {}",
        "--password={}",
        "Authorization: Bearer {}",
        "authorization: Basic {}=",
        "bearer {}",
        "hf_{}",
        "ghp_{}",
        "github_pat_{}",
        "AKIA{}",
        "glpat-{}",
        "sk-{}",
        "eyJhbGciOiJIUzI1NiJ9.{0}.{0}",
        "https://bob:{}@example.com/x",
        "https://{}@example.com/x",
        "https://x.com/a?b=1&X-Amz-Signature={}&c=2",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n{0}\n{0}\n-----END OPENSSH PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n{}",
        "ssh-rsa AAAA{} me@there",
        "LTAI{}",
    ]
)
AROUND = st.text(max_size=80)
BETWEEN = st.sampled_from([" ", "\n", "\t", "; ", ', "', "\n  ", "(", " - ", "] "])


@settings(max_examples=300, deadline=None)
@given(AROUND, BETWEEN, FORMS, SECRET, st.sampled_from([" ", "\n", ")", "'"]), AROUND)
def test_a_secret_never_survives(before: str, between: str, form: str, secret: str, end: str, after: str) -> None:
    text = before + between + form.format(secret) + end + after
    found = clean(text)
    assert secret not in found
    assert found.count("\n") == text.encode("utf-8", "replace").decode().count("\n")


@settings(max_examples=150, deadline=None)
@given(AROUND, BETWEEN, st.ip_addresses(v=4, network="10.0.0.0/8"), st.sampled_from(["", ":22", "/24", "]", ",", ".log"]), AROUND)
def test_a_private_address_never_survives(before: str, between: str, address: object, end: str, after: str) -> None:
    found = clean(before + between + str(address) + end + " " + after)
    assert not re.search(rf"(?<![\d.]){re.escape(str(address))}(?![\d.]*\d)", found) or str(address) in before + after


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300))
def test_any_text_keeps_its_lines_and_is_neutral_the_second_time(text: str) -> None:
    found = clean(text)
    assert found.count("\n") == text.count("\n")
    assert clean(found).count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "1.",
        "1.1.1.1.",
        ":",
        "::",
        "a:",
        "token",
        "token=",
        "-",
        "/home/",
        "@",
        "a@b.",
        "-----BEGIN PRIVATE KEY-----",
        '"',
        "Serial Number: ",
    ],
)
def test_no_text_takes_long(piece: str) -> None:
    text = piece * (400_000 // len(piece))
    start = time.process_time()
    neutral = Neutral()
    neutral.learn(text)
    neutral.text(text)
    assert time.process_time() - start < 20  # a pattern that runs away needs hours


def test_progress_tells_of_every_text_twice_and_ends_with_all() -> None:
    told: list[tuple[int, int]] = []
    neutralised({"a.log": "x" * 10, "b.log": "y" * 30}, progress=lambda done, total: told.append((done, total)))
    assert told == [(10, 80), (40, 80), (50, 80), (80, 80)]
