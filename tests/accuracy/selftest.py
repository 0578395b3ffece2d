#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scorer and trace2plan tell right from wrong: a stand-in for memplan answers with a trace's own figures, then
with one figure changed at a time."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
STAND_IN = '''#!/bin/sh
cat >/dev/null
cat "$ANSWER"
'''
failures = 0


def check(ok, what):
    global failures
    if not ok:
        failures += 1
        print("FAIL:", what)


def load(name):
    with open(os.path.join(HERE, "cases", name + ".json"), encoding="utf-8") as f:
        return json.load(f)


def answer(trace):
    """The memplan.predict/1 document that agrees with a trace."""
    def windows(it):
        return [{"name": p["phase"], "micro_batch": p["micro"], "start_bytes": p["start"], "peak_bytes": p["peak"],
                 "end_bytes": p["end"], "op": None if p["peak_op"] == "(start)" else p["peak_op"].split(".")[0]}
                for p in trace["phases"] if p["iter"] == it]
    whole = trace["peak"]["steady"]["bytes"]
    return {"by_class": [{"bytes": whole - 512}, {"bytes": 512}], "by_tensor": [{"bytes": whole}],
            "formula": "4*S + round_up(c, 512)", "dimensions": {"S": (whole - 512) // 4, "c": whole % 4 + 1},
            "model": {"parameters": trace["parameters"]["count"]},
            "peak": {"allocated_bytes": whole, "first_step_bytes": trace["peak"]["iter1"]["bytes"], "steady_step_bytes": trace["peak"]["steady"]["bytes"]},
            "steps": {"first": {"windows": windows(1)}, "steady": {"windows": windows(2)}},
            "saved_per_layer_bytes": trace["saved_per_layer"]}


def score(folder, name, change=lambda a: None):
    a = answer(load(name))
    change(a)
    path = os.path.join(folder, "answer.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(a, f)
    r = subprocess.run([os.path.join(HERE, "run"), "--check", "--memplan", os.path.join(folder, "memplan"),
                        os.path.join(HERE, "cases", name + ".json")],
                       capture_output=True, text=True, env=dict(os.environ, ANSWER=path))
    return r.returncode, r.stdout + r.stderr


def steady(a):
    return a["steps"]["steady"]["windows"]


def set_in(get, key, factor):
    def change(a):
        get(a)[key] = int(get(a)[key] * factor)
    return change


WRONG = (            # change, what the scorer must say
    (set_in(lambda a: a["peak"], "steady_step_bytes", 1.02), "steady peak +2.000 %"),
    (set_in(lambda a: a["peak"], "steady_step_bytes", 0.98), "steady peak -2.000 %"),
    (set_in(lambda a: a["peak"], "first_step_bytes", 1.01), "first iteration +1.000 %"),
    (set_in(lambda a: steady(a)[0], "end_bytes", 1.01), "end of forward, micro-batch 0, iteration 2: +1.000 %"),
    (set_in(lambda a: a["model"], "parameters", 1.01), "parameter count"),
    (set_in(lambda a: steady(a)[0], "peak_bytes", 9), "peak at forward nll_loss_forward, traced backward"),
    (lambda a: steady(a)[1].update(op="mm"), "peak at backward mm, traced backward embedding_dense_backward"),
    (lambda a: a["saved_per_layer_bytes"].append(1), "saved bytes per layer"),
    (lambda a: a["steps"]["first"]["windows"].pop(0), "of forward, micro-batch 0, iteration 1: -100.000 %"),
    (set_in(lambda a: a["by_class"][0], "bytes", 1.01), "classes or tensors do not sum to the peak"),
    (set_in(lambda a: a["dimensions"], "S", 1.01), "the formula is not the peak"),
    (lambda a: a.update(formula="4*T"), "not a memplan.predict/1 document"),
    (lambda a: a.pop("steps"), "not a memplan.predict/1 document"),
)


def scorer(folder):
    with open(os.path.join(folder, "memplan"), "w", encoding="utf-8") as f:
        f.write(STAND_IN)
    os.chmod(os.path.join(folder, "memplan"), 0o755)
    for name in ("llama2-L2-s512", "llama2-L2-s2048-ga4", "llama2-L2-s512-clip", "fsdp2-llama2-L4-w8"):
        status, text = score(folder, name)
        check(status == 0, f"{name}: its own figures are right:\n{text}")
    for change, message in WRONG:
        status, text = score(folder, "llama2-L2-s512", change)
        check(status == 1 and message in text, f"the scorer says {message!r}:\n{text}")


def plan(folder, case):
    path = os.path.join(folder, "case.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write(case if isinstance(case, str) else json.dumps({"case": case}))
    return subprocess.run([os.path.join(HERE, "trace2plan"), path], capture_output=True, text=True)


def translator(folder):
    case = load("llama2-L2-s512")["case"]
    for change, status, message in (
            ({}, 0, ""),
            ({"dtype": "amp_bf16", "checkpoint": "sac_mm", "loss": {"kind": "chunked", "chunks": 4}}, 0, ""),
            ({"surprise": 1}, 3, "unknown field case.surprise"),
            ({"loss": {"kind": "hf", "surprise": 1}}, 3, "unknown field loss.surprise"),
            ({"dtype": "int3"}, 3, 'case.dtype: "int3"'),
            ({"checkpoint": "sac_some"}, 3, "case.checkpoint"),
            ({"overrides": {"surprise": 1}}, 3, "overrides.surprise"),
            ({"overrides": {"rope_theta": 500000.0, "use_cache": False}}, 0, ""),
            ({"seq": None, "optimizer": {"name": "adamw"}}, 2, "'impl' is missing")):
        r = plan(folder, dict(case, **change))
        check(r.returncode == status and message in r.stderr, f"trace2plan {change}: {r.returncode} {r.stderr}")
    check(plan(folder, "{").returncode == 2, "trace2plan refuses what is not JSON")


with tempfile.TemporaryDirectory() as tmp:
    scorer(tmp)
    translator(tmp)
sys.exit(failures != 0)
