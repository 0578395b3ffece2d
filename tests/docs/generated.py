# SPDX-License-Identifier: GPL-3.0-or-later
"""Text that a command prints into a committed file is fresh: blocks of documents, whole completion files."""
import os

import doctext

MARKS = {"md": ("<!-- generated: ", " -->", "<!-- end generated -->"), "mdoc": ('.\\" generated: ', "", '.\\" end generated')}
COMPLETIONS = {"completions/memplan.bash": "memplan completion bash", "completions/_memplan": "memplan completion zsh",
               "completions/memplan.fish": "memplan completion fish"}

edited, total = {}, 0
for page in doctext.MARKDOWN + doctext.man_pages():
    begin, tail, last = MARKS["md" if page.endswith(".md") else "mdoc"]
    lines = doctext.read(page)
    for i, line in enumerate(lines):
        if line.startswith(begin):
            end = lines.index(last, i)
            command = line.removeprefix(begin).removesuffix(tail)
            doctext.compare(page, i + 1, lines[i + 1:end], doctext.run(command), edited.setdefault(page, []))
            total += 1
for path, command in COMPLETIONS.items():
    if os.path.exists(os.path.join(doctext.SRCDIR, os.path.dirname(path))):
        doctext.compare(path, 0, doctext.read(path), doctext.run(command) + [""], edited.setdefault(path, []))
        total += 1
print("%d generated texts" % total)
if total == 0:
    raise SystemExit("nothing generated found")
doctext.finish(edited)
