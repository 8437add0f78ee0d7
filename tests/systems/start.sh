# SPDX-License-Identifier: Apache-2.0
# `root`, this checkout; `work`, a folder that goes with the script; empty systems and lines of the README. To be sourced.
# shellcheck shell=bash disable=SC2034

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d -p /var/tmp)
trap 'rm -rf -- "$work"' EXIT
# shellcheck source=tests/support/empty_system.sh
source "$root/tests/support/empty_system.sh"
# shellcheck source=tests/support/readme.sh
source "$root/tests/support/readme.sh"
