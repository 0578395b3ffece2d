#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Static analysis; run from the source folder.
set -eu
flags="-std=c11 -Isrc -D_POSIX_C_SOURCE=200809L -DMEMPLAN_DATADIR=\"/nonexistent\" -DPACKAGE_VERSION=\"0\""
status=0
cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
	--suppress=missingIncludeSystem -Isrc "-DMEMPLAN_DATADIR=\"x\"" "-DPACKAGE_VERSION=\"0\"" src || status=1
# shellcheck disable=SC2086
clang-tidy --quiet --warnings-as-errors='*' \
	--checks='-*,bugprone-*,clang-analyzer-*,-bugprone-easily-swappable-parameters,-bugprone-assignment-in-if-condition,-bugprone-reserved-identifier,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling' \
	$(find src -name '*.c') -- $flags $(pkg-config --cflags yaml-0.1 jansson) || status=1
exit $status
