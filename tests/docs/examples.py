# SPDX-License-Identifier: GPL-3.0-or-later
"""Every example in the documents runs and prints what the document says."""
import doctext


def blocks(path, lines):
    """Yields (first, end) of the lines inside each runnable block."""
    markdown = path.endswith(".md")
    i = 0
    while i < len(lines):
        if markdown and lines[i] == "```console":
            first = i + 1
            i = lines.index("```", first)
            yield first, i
        elif not markdown and lines[i] == '.\\" run':
            if not lines[i + 1].startswith(".Bd -literal"):
                raise SystemExit("%s:%d: no .Bd -literal after the marker" % (path, i + 2))
            first = i + 2
            i = lines.index(".Ed", first)
            yield first, i
        i += 1


def check(path, edits):
    markdown = path.endswith(".md")
    lines = doctext.read(path)
    count = 0
    for first, end in blocks(path, lines):
        starts = [i for i in range(first, end) if lines[i].startswith("$ ")] + [end]
        if starts[0] != first:
            raise SystemExit("%s:%d: an example starts with '$ '" % (path, first + 1))
        for at, stop in zip(starts, starts[1:]):
            command = lines[at][2:] if markdown else doctext.from_mdoc(lines[at][2:])
            found = doctext.run(command)
            found = [] if found == [""] else found if markdown else [doctext.to_mdoc(t) for t in found]
            doctext.compare(path, at + 1, lines[at + 1:stop], found, edits)
            count += 1
    return count


edited, total = {}, 0
for document in doctext.MARKDOWN + doctext.man_pages():
    total += check(document, edited.setdefault(document, []))
print("%d commands" % total)
if total == 0:
    raise SystemExit("no example found")
doctext.finish(edited)
