# SPDX-License-Identifier: GPL-3.0-or-later
"""What the documentation tests share: finding blocks in README.md, HACKING.md and man pages, running commands.

A document is read as (line number, text) blocks that a command of this tree can reproduce:
  markdown   a fenced block ```console with lines "$ command" and what it prints
  mdoc       the same in a .Bd -literal block that follows a comment line .\\" run
  mdoc       the lines between .\\" generated: COMMAND and .\\" end generated
With UPDATE=1 in the environment the tests rewrite the documents instead of failing."""
import difflib
import os
import subprocess
import sys

SRCDIR = os.path.abspath(os.environ.get("srcdir", "."))
MEMPLAN = os.path.abspath(os.environ.get("MEMPLAN", "memplan"))
UPDATE = os.environ.get("UPDATE", "") not in ("", "0")
MARKDOWN = ["README.md", "HACKING.md"]


def man_pages():
    folder = os.path.join(SRCDIR, "man")
    return [os.path.join("man", f) for f in sorted(os.listdir(folder)) if f[-2:-1] == "."]


def read(path):
    with open(os.path.join(SRCDIR, path), encoding="utf-8") as f:
        return f.read().split("\n")


def write(path, lines):
    with open(os.path.join(SRCDIR, path), "w", encoding="utf-8") as f:
        f.write("\n".join(lines))


def run(command):
    """Runs a shell command in the source folder as a reader would; stdout and stderr in one text."""
    env = dict(os.environ, PATH=os.path.dirname(MEMPLAN) + os.pathsep + os.environ["PATH"],
               MEMPLAN_DATA=SRCDIR, COLUMNS="80", NO_COLOR="1", LC_ALL="C.UTF-8")
    p = subprocess.run(["sh", "-c", command], cwd=SRCDIR, env=env, timeout=60, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if p.returncode < 0 or p.returncode in (70, 126, 127):
        sys.exit("%s: exit status %d\n%s" % (command, p.returncode, p.stdout.decode()))
    return p.stdout.decode().rstrip("\n").split("\n")


def to_mdoc(line):
    line = line.replace("\\", "\\e")
    return "\\&" + line if line[:1] in (".", "'") else line


def from_mdoc(line):
    return line.removeprefix("\\&").replace("\\e", "\\")


def compare(path, line, wanted, found, edits):
    """Notes an edit; prints the difference.  True when equal."""
    if wanted == found:
        return True
    edits.append((line, len(wanted), found))
    if not UPDATE:
        print("%s:%d: the document and the program differ" % (path, line + 1))
        print("\n".join(difflib.unified_diff(wanted, found, "document", "program", lineterm="")))
    return False


def finish(edited):
    """edited: {path: edits}.  Applies them under UPDATE=1, else exits 1 when there is any."""
    bad = False
    for path, edits in edited.items():
        if edits and UPDATE:
            lines = read(path)
            for start, count, new in sorted(edits, key=lambda e: -e[0]):
                lines[start:start + count] = new
            write(path, lines)
        bad = bad or bool(edits)
    sys.exit(1 if bad and not UPDATE else 0)
