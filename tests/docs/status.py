# SPDX-License-Identifier: GPL-3.0-or-later
"""Every exit status of memplan(1) is one that the program gives, and each is tried."""
import array
import fcntl
import os
import re
import signal
import subprocess
import sys
import termios
import time

import doctext

PLAN = "examples/llama-3-8b-fsdp2-8xh100.yaml"
CASES = {
    0: [["predict", "-q", PLAN], ["check", PLAN], ["list", "gpus"], ["--version"]],
    1: [["predict", "-q", "--set", "hardware.capacity=1GiB", PLAN]],
    2: [[], ["predict"], ["predict", "--no-such-option", PLAN], ["check", "--set", "train.seq_len=0", PLAN]],
    3: [["predict", "--set", "framework=megatron", PLAN], ["predict", "-q", "--strict", PLAN]],
    4: [["check", "examples/no-such-file.yaml"], ["predict", "-o", "no/such/folder/out", PLAN]],
}
bad = 0


def check(args, wanted, found):
    global bad
    if found != wanted:
        bad += 1
        print("memplan %s: exit status %s, wanted %d" % (" ".join(args), found, wanted))


def status(args):
    return subprocess.run([doctext.MEMPLAN] + args, cwd=doctext.SRCDIR, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60).returncode


def status_of_bug():
    """A broken invariant aborts; here a signal does, once the program is known to read its input."""
    p = subprocess.Popen([doctext.MEMPLAN, "check", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    os.write(p.stdin.fileno(), b"a")
    waiting = array.array("i", [1])
    while waiting[0] and p.poll() is None:
        fcntl.ioctl(p.stdin.fileno(), termios.FIONREAD, waiting)
        time.sleep(0.001)
    p.send_signal(signal.SIGABRT)
    return p.wait(60)


for wanted, commands in CASES.items():
    for args in commands:
        check(args, wanted, status(args))
check(["check", "-"], 70, status_of_bug())

page = "\n".join(doctext.read("man/memplan.1"))
table = page[page.index(".Sh EXIT STATUS"):].split(".El")[0]
documented = [int(n) for n in re.findall(r"^\.It (\d+)$", table, re.M)]
if documented != sorted(CASES) + [70]:
    bad += 1
    print("man/memplan.1 documents", documented)
sys.exit(bad != 0)
