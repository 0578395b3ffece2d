#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Predictions are as right as tests/accuracy/run promises.
command -v python3 >/dev/null || exit 77
# shellcheck disable=SC2154
exec "$srcdir/tests/accuracy/run" --check
