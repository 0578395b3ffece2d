#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The cases of the folder that is called like this script.
# shellcheck disable=SC2154
exec sh "$srcdir/tests/golden.sh" "$(basename "$0" .sh)"
