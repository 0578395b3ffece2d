#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every data file passes `memplan check`; every example is answered.
# shellcheck disable=SC2154
cd "$srcdir" || exit 99
"$MEMPLAN" check models/*.yaml calibrations/*.yaml examples/*.yaml >/dev/null || exit 1
count=0 bad=0
for plan in examples/*.yaml; do
	count=$((count + 1))
	"$MEMPLAN" predict -q "$plan"
	case $? in
	0 | 1) ;;
	*) echo "no answer: $plan"; bad=$((bad + 1)) ;;
	esac
done
echo "$count examples, $bad without an answer"
test "$count" -gt 0 && test "$bad" = 0
