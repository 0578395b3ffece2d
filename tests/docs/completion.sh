#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The bash completion completes commands, options and values.
# shellcheck disable=SC2154
command -v bash >/dev/null || exit 77
bash -u <<EOT
. "$srcdir/completions/memplan.bash"
bad=0
# complete_as WANTED WORD...: what the last word may become
complete_as() {
	local wanted=\$1
	shift
	COMP_WORDS=(memplan "\$@") COMP_CWORD=\$#
	_memplan
	case " \${COMPREPLY[*]-} " in
	*" \$wanted "*) ;;
	*) echo "memplan \$*: no \$wanted in: \${COMPREPLY[*]-}"; bad=1 ;;
	esac
}
complete_as predict pre
complete_as --format predict --fo
complete_as json predict --format js
complete_as models list mod
exit \$bad
EOT
