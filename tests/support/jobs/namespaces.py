# SPDX-License-Identifier: Apache-2.0
"""Hosts for tests: network namespaces whose only way to each other is a bridge. Needs "hosts" (support/machine.py)."""

import contextlib
import os
import subprocess
import tempfile
import time


LIMIT_S = 60


def ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


def await_running(host, wire="eth0"):
    """The kernel says a moment after both ends are up that the wire carries; UCX looks at that."""
    deadline = time.monotonic() + LIMIT_S
    while "state UP" not in ip("-n", host, "-o", "link", "show", wire):
        if time.monotonic() > deadline:
            raise AssertionError(f"{wire} of {host} does not come up")
        time.sleep(0.01)


class Namespaces(contextlib.ExitStack):
    """So many of them, with names and addresses; gone at the end, however it comes."""

    def __init__(self, count):
        super().__init__()
        self.names = [f"memspan-h{i}-{os.getpid()}" for i in range(count)]
        self.addresses = [f"10.78.0.{i + 1}" for i in range(count)]

    def __enter__(self):
        super().__enter__()
        switch = f"memspan-switch-{os.getpid()}"
        with contextlib.ExitStack() as undo:
            for name in (switch, *self.names):
                ip("netns", "add", name)
                undo.callback(ip, "netns", "del", name)
            ip("-n", switch, "link", "add", "bridge", "type", "bridge")
            ip("-n", switch, "link", "set", "bridge", "up")
            for i, (name, address) in enumerate(zip(self.names, self.addresses)):
                port = f"port{i}"
                ip("link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", port, "netns", switch)
                ip("-n", switch, "link", "set", port, "master", "bridge", "up")
                ip("-n", name, "link", "set", "lo", "up")
                ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
                ip("-n", name, "link", "set", "eth0", "up")
            for name in self.names:
                await_running(name)
            self.push(undo.pop_all())
        return self

    def inside(self, host):
        """The words before a command that runs there."""
        return ["ip", "netns", "exec", self.names[host]]


def enter(holder):
    """The words before a command that runs in the namespaces of that process, in this folder."""
    return ["nsenter", "--mount", "--net", "--uts", "--ipc", "--target", str(holder), f"--wd={os.getcwd()}"]


# Says that it is ready, and lives until its standard input ends.
_HOLD = """
mount -t tmpfs -o mode=1777 memspan-test /dev/shm
case $MEMSPAN_TEST_OWN_TMP in 1) mount -t tmpfs -o mode=1777 memspan-test /tmp ;; esac
mount --bind "$2" /etc/hosts
hostname "$1" && echo ready && exec cat
"""


class Hosts(Namespaces):
    """Namespaces with a name that all know, a /dev/shm and, where `own_tmp` says so, a /tmp of their own. Each is held
    by a process, whose id is in `holders`."""

    def __init__(self, count, own_tmp=True):
        super().__init__(count)
        self.holders = []
        self._own_tmp = own_tmp

    def __enter__(self):
        super().__enter__()
        with contextlib.ExitStack() as undo, tempfile.NamedTemporaryFile("w", dir="/var/tmp") as names:
            undo.callback(self.close)
            names.write("127.0.0.1 localhost\n")
            names.writelines(f"{address} host-{i}\n" for i, address in enumerate(self.addresses))
            names.flush()
            for i in range(len(self.names)):
                self.holders.append(self._hold(i, names.name))
            undo.pop_all()
        return self

    def _hold(self, host, names):
        # ip, unshare and sh are one process after the other.
        holder = subprocess.Popen(
            [*super().inside(host), "unshare", "--mount", "--uts", "--ipc", "sh", "-e", "-c", _HOLD, "sh", f"host-{host}", names],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "MEMSPAN_TEST_OWN_TMP": "1" if self._own_tmp else "0"})
        self.callback(holder.communicate, timeout=LIMIT_S)
        if holder.stdout.readline() != "ready\n":
            raise AssertionError(f"host {host} has no mounts of its own")
        return holder.pid

    def inside(self, host):
        return enter(self.holders[host])
