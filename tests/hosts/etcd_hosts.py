# SPDX-License-Identifier: Apache-2.0
"""Three members of etcd, each on a host of its own."""

import datetime
import json
import os
import shutil
import subprocess
import tempfile

from jobs.launcher import until
import machine

CLIENT_PORT, PEER_PORT = 2379, 2380
LIMIT_S = 30
ETCD = shutil.which("etcd")


class EtcdHosts:
    """On the hosts of these numbers. Everything of it is gone after close()."""

    def __init__(self, hosts, places):
        self._hosts, self._places = hosts, places
        # Its log is synchronised at every write, which memory does at once.
        self._folder = tempfile.mkdtemp(prefix="tests-etcd.", dir=None if machine.why_lacking("dev_shm") else "/dev/shm")
        self._processes = {}
        for place in places:
            self.start(place)

    def url(self, prefix="jobs"):
        return "etcd://" + ",".join(f"{self._hosts.addresses[place]}:{CLIENT_PORT}" for place in self._places) + "/" + prefix

    def start(self, place):
        address = self._hosts.addresses[place]
        everybody = ",".join(f"m{other}=http://{self._hosts.addresses[other]}:{PEER_PORT}" for other in self._places)
        client, peer = f"http://{address}:{CLIENT_PORT}", f"http://{address}:{PEER_PORT}"
        self._processes[place] = subprocess.Popen(
            [*self._hosts.inside(place), ETCD, "--name", f"m{place}", "--data-dir", os.path.join(self._folder, str(place)),
             "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
             "--initial-advertise-peer-urls", peer, "--initial-cluster", everybody, "--initial-cluster-token", self._folder,
             "--logger", "zap", "--log-outputs", os.path.join(self._folder, f"log{place}")],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "GOMAXPROCS": "1"})

    def kill(self, place):
        self._processes[place].kill()
        self._processes[place].wait()

    def close(self):
        for place in self._processes:
            self.kill(place)
        shutil.rmtree(self._folder, ignore_errors=True)

    def post(self, place, path, body):
        """The answer, asked for on that host; None when there is none."""
        # Another network namespace is another process's.
        script = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], sys.argv[2].encode(), 2).read().decode())"
        url = f"http://{self._hosts.addresses[place]}:{CLIENT_PORT}{path}"
        result = subprocess.run([*self._hosts.inside(place), "python3", "-c", script, url, json.dumps(body)],
                                capture_output=True, text=True, check=False)
        return json.loads(result.stdout) if result.returncode == 0 else None

    def last_election(self, besides):
        """When the others had a leader for the last time that they tell of, in seconds since 1970."""
        told = []
        for place in self._places:
            if place == besides:
                continue
            with open(os.path.join(self._folder, f"log{place}")) as log:
                told += [json.loads(line)["ts"] for line in log if "elected leader" in line]
        return datetime.datetime.strptime(max(told), "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()

    def leader(self):
        """The host of who a majority follows, waited for."""
        found = []

        def is_known():
            members, followed = {}, []
            for place in self._places:
                status = self.post(place, "/v3/maintenance/status", {})
                if status is not None:
                    members[status["header"]["member_id"]] = place
                    followed.append(status.get("leader", "0"))
            best = max(followed, key=followed.count, default="0")
            if 2 * followed.count(best) > len(self._places) and best in members:
                found.append(members[best])
            return bool(found)

        until(LIMIT_S, "a leader of etcd", is_known)
        return found[-1]
