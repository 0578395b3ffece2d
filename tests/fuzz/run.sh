#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# run.sh FOLDER SECONDS: each fuzz target for so many seconds, from seeds in the tree and what earlier runs kept.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$here")")
for target in yaml plan config; do
	corpus=$1/corpus_$target
	mkdir -p "$corpus"
	case $target in
	yaml) seeds="$root/calibrations $root/tests/errors" dictionary=$here/plan.dict ;;
	plan) seeds="$root/examples $root/tests/errors $root/tests/check" dictionary=$here/plan.dict ;;
	config) seeds="$root/models $root/tests/configs" dictionary=$here/config.dict ;;
	esac
	folders=
	for f in $seeds; do test ! -d "$f" || folders="$folders $f"; done
	echo "fuzz_$target: $2 s"
	# shellcheck disable=SC2086
	(cd "$1" && ./fuzz_$target -max_total_time="$2" -max_len=65536 -timeout=10 -rss_limit_mb=2048 \
		-print_final_stats=1 -dict="$dictionary" "$corpus" $folders >$target.log 2>&1) || {
		tail -40 "$1/$target.log"
		exit 1
	}
	grep '^stat::' "$1/$target.log"
done
