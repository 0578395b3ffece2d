#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Static analysis; run from the source folder.
# shellcheck disable=SC2046
set -u
status=0
jobs=$(getconf _NPROCESSORS_ONLN)
set -- -Isrc -D_POSIX_C_SOURCE=200809L '-DMEMPLAN_DATADIR="/nonexistent"' '-DPACKAGE_VERSION="0"'
cppcheck --quiet -j "$jobs" --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
	--suppress=missingIncludeSystem "$@" src || status=1
checks='-*,bugprone-*,clang-analyzer-*,-bugprone-easily-swappable-parameters,-bugprone-assignment-in-if-condition'
checks=$checks,-bugprone-reserved-identifier,-bugprone-suspicious-string-compare,-bugprone-sizeof-expression
checks=$checks,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling
find src -name '*.c' -print0 | xargs -0 -P "$jobs" -I FILE clang-tidy --quiet --warnings-as-errors='*' --checks="$checks" \
	FILE -- -std=c11 "$@" $(pkg-config --cflags yaml-0.1 jansson) || status=1
exit $status
