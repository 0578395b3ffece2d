#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Man pages are clean for mandoc's linter.
command -v mandoc >/dev/null || exit 77
status=0
for page in "$srcdir"/man/*.[1-9]; do
	# mandoc exits 0 below the given level; a page from a read-only tree has no "Mdocdate", which is style.
	mandoc -T lint -W warning "$page" || status=1
done
exit $status
