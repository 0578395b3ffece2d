#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Makefile.am names every source file, every unit test and nothing else.
cd "$srcdir" || exit 99
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
find src -name '*.[ch]' ! -path 'src/probe/*' | sort >"$tmp/tree"
find tests/unit -name 'test_*.c' | sed 's/\.c$//' | sort >"$tmp/units"
grep -oE 'src/[a-z0-9_/]+\.[ch]' Makefile.am | sort -u >"$tmp/made"
grep -oE 'tests/unit/test_[a-z0-9_]+' Makefile.am | sort -u >"$tmp/made_units"
diff -u "$tmp/made" "$tmp/tree" && diff -u "$tmp/made_units" "$tmp/units"
