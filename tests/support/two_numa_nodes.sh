# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Runs a command in a mount namespace whose /sys names two NUMA nodes. 77 if no such namespace is allowed.
set -eu
readonly inner='f=$(mktemp) && echo 0-1 >"$f" && mount --bind "$f" /sys/devices/system/node/online && rm "$f" && exec "$@"'
for options in -m -rm; do
  if unshare "$options" sh -c "$inner" sh true 2>/dev/null; then
    exec unshare "$options" sh -c "$inner" sh "$@"
  fi
done
echo "needs=mounts"
exit 77
