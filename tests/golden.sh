#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Golden tests: runs memplan on each NAME.yaml and NAME.json of the folders given (default: errors) and compares
# standard output with NAME.out, standard error with NAME.err (absent: nothing may be printed) and the exit status.
# Comment lines at the top of NAME.yaml may say more:
#   # args: predict --set train.micro_batch=2 @     what to run; @ is the file; default: check @
#   # status: 3                                     expected exit status; default: 2 with NAME.err, else 0
# UPDATE=1 rewrites the goldens.
set -u
memplan=${MEMPLAN:-memplan}
top=$(cd "${srcdir:-.}" && pwd)
test -d "$top/tests" || top=$(dirname "$top")
export MEMPLAN_DATA="${MEMPLAN_DATA:-$top}" NO_COLOR=1 LC_ALL=C.UTF-8
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
count=0 bad=0

# header KEY FILE: the value of "# KEY: value" among the leading comment lines.
header() { LC_ALL=C sed -n "/^#/!q; s/^# $1: //p" "$2"; }

# same NAME.SUFFIX: compares, or rewrites with UPDATE=1.
same() {
	if test "${UPDATE:-0}" = 1; then
		if test -s "$work/$2"; then cp "$work/$2" "$1.$2"; else rm -f "$1.$2"; fi
		return 0
	fi
	if test -f "$1.$2"; then want=$1.$2; else want=/dev/null; fi
	diff -u "$want" "$work/$2"
}

run_case() {
	name=${1%.*}
	args=$(header args "$1")
	status=$(header status "$1")
	eval "set -- $(printf '%s' "${args:-check @}" | sed "s|@|$1|g")"
	"$memplan" "$@" >"$work/out" 2>"$work/err" </dev/null
	found=$?
	same "$name" out && same "$name" err || return 1
	if test -z "$status"; then
		if test -f "$name.err"; then status=2; else status=0; fi
	fi
	test "$found" = "$status" || { echo "exit status $found, wanted $status"; return 1; }
}

test $# -gt 0 || set -- errors
for folder; do
	cd "$top/tests/$folder" || exit 99
	for file in *.yaml *.json; do
		test -f "$file" || continue
		count=$((count + 1))
		(run_case "$file") || { echo "FAIL $folder/$file"; bad=$((bad + 1)); }
	done
done
echo "$count cases, $bad failed"
test "$bad" = 0 && test "$count" -gt 0
