"""Codes in lines of logs: found with the right family, and nothing else taken for one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jumar.device.ascend import codes_in, find_code

CASES = Path(__file__).resolve().parents[4] / "../shared/cases/public"

LINES = [  # line, (text, what it is) of each mention
    ("EL9999  [drv api] halQueueQueryInfo failed: deviceId=0, qid=1, drvRetCode=7.[FUNC:X][FILE:npu_driver.cc]", ["EL9999", "drv 7"]),
    ("[drv api] halCqReportRecv failed: device_id=1, ts_id=0, type=2, logic_cq=4, drv_ret_code=33[FUNC:L]", ["drv 33"]),
    ("halGetDeviceInfo get device type version failed , ret:87[FUNC:Init][FILE:config_manager.cpp][LINE:61]", ["drv 87"]),
    ("drv ret 87", ["drv 87"]),
    ("halEschedSubmitEventSync ... ret=62", ["drv 62"]),
    ("[Alloc]call trace: hcclRet -> 4", ["hccl 4"]),
    ("host nic listen start failed, port[60000], return[11][FUNC:StartListenSocket][FILE:network_manager.cc][LINE:1163]", ["hccl 11"]),
    ("HCCL function error: HcclGetRootInfo(&hcclID), error code is 11", ["hccl 11"]),
    ("[ERROR] HCCL(1,python):2025-07-23-03:49:57.177.265 [socket.cc:830] [27][Wait][LinksEstablish] is failed. ret[9].", ["hccl 9"]),
    ("[HcclComm][Init]errNo[0x0000000005000007] hccl initialize failed", ["0x0000000005000007"]),
    ("hcom init failed, rankNum[8], rank[0], server[10.*.*.*], device[0], return[83951623]", ["83951623"]),
    ("Build SQ/CQ failed, stream_id=47, model_id=49, retCode=0x7020023.[FUNC:P]", ["0x7020023"]),
    ("rtModelExecute:ErrCode=207005, desc=[driver error:resource alloc fail], InnerCode=0x7020023", ["207005", "0x7020023"]),
    ("stream wait event failed, runtime result = 207005[FUNC:ReportCallError][FILE:log_inner.cpp]", ["207005"]),
    ("NPU function error: aclrtSynchronizeStream(stream), error code is 507018", ["507018"]),
    ("[Init][Version]init soc version failed, ret = 507008[FUNC:ReportInnerError][FILE:log_inner.cpp][LINE:145]", ["507008"]),
    ("[ERROR]  acl set device 0 failed, errorCode = 507033", ["507033"]),
    ("build op model failed, result = 500001[FUNC:ReportInnerError]", ["500001"]),
    ("aclrtSynchronizeStream(stream) failed: 507035 (main.cpp:92)", ["507035"]),
    ("CANN failure 507013: (look for ACL_ERROR_xxx in acl. h); NPU=0", ["507013"]),
    ("rtKernelLaunchWithHandleV2: 207001, desc=[Failed to create the module object.]", ["207001"]),
    ("launch failed for Cast, errno:561000.", ["561000"]),
    ("call aclnnFusedInferAttentionScoreV3 failed, error code is 561002", ["561002"]),
    ("报错507018，请检查", ["507018"]),
    ("错误码：107002", ["107002"]),
    ("dcmi module initialize failed. ret is -8005", ["-8005"]),
    ("failed to get device health:ret code: -8010,health code: 4", ["-8010"]),
    ("dcmi error code 8020", ["dcmi 8020"]),
    ("Aicpu kernel execute failed, device_id=2, soName=x.so, funcName=f, errorCode=0x2a", ["ts 0x2a"]),
    ("Aicpu kernel execute failed, funcName=f, errorCode=3", ["aicpu 3"]),
    ("[AICPU_PROCESSER] aicpu task failed, ret=21007", ["aicpu 21007"]),
    ("model execute failed, errorCode=521106", ["521106"]),
    ("Kernel task happen error, retCode=0x31, [vector core exception].[FUNC:PreCheckTaskErr]", ["ts 0x31"]),
    (
        "there is an exception of aivec error, core id is 14, error code = 0x800000, dump info: pc start: 0x124400000000",
        ["aicore 0x800000"],
    ),
    ("The extend info: errcode:(0x10, 0, 0) errorStr: Illegal instruction. fixp_error0 info: 0x3001a20", ["(0x10, 0, 0)"]),
    ("[ERROR] 2025-01-01-05:41:35 (PID:13799, Device:0, RankID:-1) ERR00100 PTA call acl api failed.", ["ERR00100"]),
    ("E40021: [PID: 2000] 2025-07-17-11:24:31.572.955 Failed to compile Op [Conv3D1]", ["E40021"]),
    ("EZ9999[PID: 1993717] 2026-03-28-09:47:18.498.247 (EZ9999):  The error", ["EZ9999", "EZ9999"]),
    ("RuntimeError: ({'errCode': 'E80000', 'op_name': 'x'})", ["E80000"]),
    ("[ERROR] hi_mpi_vpc_resize failed, ret = 0xa0078003", ["0xa0078003"]),
    ("hi_mpi_vdec_send_stream fail, ret = -1610252273", ["-1610252273"]),
    ("[ERROR] [model.cpp:41] : [MIE05E000002] Execute atb graph failed", ["MIE05E000002"]),
    ("        Error Code                     : 80818C00", ["80818C00"]),
    ("Error Code : 80E18005 81078603", ["80E18005", "81078603"]),
    ("event id=0x81AF8000", ["0x81AF8000"]),
    ("devdrv_imu_mbx3_notifier  Get mntn message. (exception_id=0xa6193215; ...)", ["0xa6193215"]),
    ("davinci_model : load task fail, return ret: 1343225860", ["1343225860"]),
    (
        "[SubGraphOpt][PreCompileOp][InitAdapter] InitializeAdapter adapter [tbe_op_adapter] failed! Ret [4294967295][FUNC:I]",
        ["4294967295"],
    ),
    ("aclrtMalloc returned ACL_ERROR_RT_MEMORY_ALLOCATION", ["ACL_ERROR_RT_MEMORY_ALLOCATION"]),
    ("wait failed: HCCL_E_TIMEOUT", ["HCCL_E_TIMEOUT"]),
    ("RuntimeError: Call aclrtSetDevice failed, ret[507033]. Got device count[8] and device id[8]", ["507033"]),
    ("Malloc device memory failed, size[207001088], ret[207001]", ["207001"]),
    ("ACL error, the error code is : 507015.", ["507015"]),
    ("NPU out: aclError: 507899", ["507899"]),
    ("rtSetDevice failed, device_id=0, return code:0x7020014", ["0x7020014"]),
    ("call trace: ret -> 4", ["hccl 4"]),
    ("hccl_result=9, tag[x]", ["hccl 9"]),
    ("drvMemAlloc failed, ret=6", ["drv 6"]),
    ("dcmi_init failed: -8005", ["-8005"]),
    ("npu-smi exited with -8012", ["-8012"]),
    ("dcmi init error code 4294959291", ["-8005"]),
    ("ErrorNo: 50331649(Parameter invalid!)", ["50331649"]),
    ("ErrorNo: 0x0300000a in GE(12,atc)", ["0x0300000a"]),
    ("\x1b[31merror code is 507018\x1b[0m", ["507018"]),
    ("错误码为 507018", ["507018"]),
    ("ERR_NO:0x0091;ERR_DES:group not exists", ["installer 0x0091"]),
]


@pytest.mark.parametrize(("line", "expected"), LINES, ids=[line[:40] for line, _ in LINES])
def test_a_line_gives_its_codes_with_their_families(line: str, expected: list[str]) -> None:
    found = codes_in(line)
    assert [m.code.number.lstrip("0").lower() for m in found] == [find_code(text)[0].number.lstrip("0").lower() for text in expected]
    assert [m.code.family for m in found] == [find_code(text)[0].family for text in expected]
    assert all(line[m.start :].startswith(m.text) for m in found)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[ERROR] HCCL(507018,python3):2025-07-23-03:49:57.177.265 [hccl_socket_manager.cc:830] [107002]",
        "(PID:507018, Device:0, RankID:-1) done",
        "(EngineCore_0 pid=507018) ERROR 08-05 11:23:25 [core.py:632] halX",
        "ERROR 08-26 03:01:18 [engine.py:458] halGetDeviceInfo failed",
        "tid: 507018, port=507000, size: 500002, time 207001",
        "pc start: 0x124400000000, current: 0x124400000060, vec error info: 0x511ddc269a",
        "The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
        "PermissionError: [Errno 13] Permission denied: '//kernel_meta'",
        "HTTP status code 404, retry 3 of 5",
        "loss is 1.507018, step 507018, 507018.5 ms, 507018 samples/s"[:16],
        "[ascend] [ERROR] dms_get_msg_from_ts icm send msg failed. (cmd_type=33; ret=110)",
        "E0419 16:59:47.826516 19842 client_service.cpp:1521] register_local_memory_failed size=1073741824",
        "commit a6193215 of branch main, sha 80818c00ff",
        "return 1",
        "ret = 0",
        "torch==2.5.1, error: 2025-03-26-17:01:03",
        "Traceback: File x.py, line 507018, in f",
        "CANN error: look for ACL_ERROR_xxx",
        "0x107002, 507018abc, abc507018, 1507018, 5070180",
        "version 8.0.RC3 failed 3 times",
        "failed (g_conLogLevel=3)",
        "error 2 of 8, code 3",
        "max_steps: 100000, vocab 200000, timeout 500000",
        "failed after 107002 ms, 207001 tokens, error 3",
        "[ERROR] HCCP(1,python): ra_socket_batch_connect failed ret(9)",
        "tensor([-8005, 3, -8020])",
        "rule npu-smi-8005 of 3",
        "connect to port failed: 21007",
        "iteration 107002 failed: loss is nan",
        "process exited with exit code 1",
    ],
)
def test_what_is_no_code_is_not_taken_for_one(line: str) -> None:
    assert [(m.text, m.code.family) for m in codes_in(line)] == []


def test_lone_surrogates_and_odd_characters_do_no_harm() -> None:
    assert [m.text for m in codes_in("\udcff 中 error code is 507018 \x00")] == ["507018"]
    assert codes_in("\udcff 中 error code is 507018")[0].start == 18


@given(st.text(alphabet=st.characters(), max_size=200))
@example("error code is " * 40)
@example("ret" + "([{" * 100 + "7")
@example("Error Code : " + "80818C00 " * 100)
def test_any_line_is_read_without_a_fault(line: str) -> None:
    assert all(line[m.start : m.start + len(m.text)] == m.text for m in codes_in(line) if line.isascii())


@given(
    st.lists(
        st.sampled_from(
            [
                "ret",
                "=",
                ":",
                " ",
                "[",
                "(",
                "0x",
                "7",
                "507018",
                "hccl",
                "hal",
                "error code",
                "EZ",
                "9999",
                "-",
                "80818C00",
                "aicpu",
                ",",
                "->",
                "ERR",
                "0",
            ]
        ),
        max_size=30,
    )
)
def test_pieces_of_codes_are_read_without_a_fault(pieces: list[str]) -> None:
    line = "".join(pieces)
    assert all(line[m.start : m.start + len(m.text)] == m.text for m in codes_in(line))


@pytest.mark.skipif(not CASES.is_dir(), reason="the public cases are not beside the checkout")
def test_every_code_in_a_public_case_is_decoded() -> None:
    names = re.compile(r"(?<![0-9A-Za-z_])(?:[EW][0-9A-Z]\d{4}|ERR\d{5})(?![0-9A-Za-z_])")
    numbers = re.compile(
        r"-80\d\d(?!\d)|0x0?7[0-9a-fA-F]{6}(?![0-9a-fA-F])|(?i:code|ret|result|failed)\w*\W{1,4}(?:is )?([125]\d{5})(?!\d)"
    )
    lost, seen = [], 0
    for path in sorted(CASES.glob("*.json")):
        for line in str(json.loads(path.read_text(encoding="utf-8"))["input"]).splitlines():
            found = {m.text for m in codes_in(line)}
            for match in [*names.finditer(line), *numbers.finditer(line)]:
                text = match[1] if match.re is numbers and match[1] else match[0]
                seen += 1
                if text not in found or not find_code(text):
                    lost.append((path.stem, text, line))
    assert seen > 80
    assert lost == []
