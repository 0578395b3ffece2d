#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every data file passes `memplan check`; every example is answered.
# shellcheck disable=SC2154
cd "$srcdir" || exit 99
"$MEMPLAN" check models/*.yaml calibrations/*.yaml examples/*.yaml >/dev/null || exit 1
# a data folder that is not there is the environment's fault, not the plan's
for what in models gpus; do
	MEMPLAN_DATA=no-such-folder "$MEMPLAN" list $what >/dev/null 2>&1
	test $? = 4 || { echo "list $what without a data folder: not 4"; exit 1; }
done
MEMPLAN_DATA=no-such-folder "$MEMPLAN" predict -q examples/llama-3-8b-fsdp2-8xh100.yaml 2>/dev/null
test $? = 4 || { echo "predict without a data folder: not 4"; exit 1; }

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
