# SPDX-License-Identifier: Apache-2.0
# Containers for tests: Docker's default capabilities and seccomp profile, 64 MiB of /dev/shm, and the host's network, by podman
# and crun. To be sourced. Needs "containers" (machine.py).
# shellcheck shell=bash

# in_container FOLDER USER COMMAND...: with that folder as root. What podman keeps is in FOLDER.podman: the machine's own storage
# may have another driver.
in_container() {
  local folder=$1 user=$2
  shift 2
  podman --runtime "$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)/crun" --cgroup-manager cgroupfs \
    --root "$folder.podman/root" --runroot "$folder.podman/run" --storage-driver vfs run --rm --interactive=false --network host --cgroups disabled \
    --cap-add NET_RAW,MKNOD,AUDIT_WRITE --shm-size 64m --user "$user" --env LC_ALL=C.UTF-8 --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    --rootfs "$folder" "$@"
}
