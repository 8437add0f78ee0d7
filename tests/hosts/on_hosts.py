# SPDX-License-Identifier: Apache-2.0
"""on_hosts.py COUNT COMMAND...: runs a command, tests for example, on the first of so many network
namespaces. Tests that part their processes among simulated hosts do so among these then: see
tests/support/jobs/hosts.py, tests/support/hosts.c and oshrun_on_hosts.sh. Needs root."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))

from jobs.namespaces import Hosts  # noqa: E402

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    count, command = int(sys.argv[1]), sys.argv[2:]
    # What is below /tmp must be seen on all hosts.
    own_tmp = not any(os.path.realpath(path).startswith("/tmp/") for path in (TREE, os.getcwd(), sys.prefix))
    if not own_tmp:
        print("the hosts share /tmp, where this tree or its Python is", flush=True)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as shared, Hosts(count, own_tmp) as hosts:
        secret = os.path.join(shared, "secret")
        with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write("the secret of these hosts")
        return subprocess.run([*hosts.inside(0), *command], check=False, env={
            **os.environ,
            "TMPDIR": shared,
            "MEMSPAN_TEST_HOLDERS": ":".join(map(str, hosts.holders)),
            "MEMSPAN_TEST_ADDRESS": hosts.addresses[0],
            "MEMSPAN_JOB_SECRET_FILE": secret,
            "MEMSPAN_TRUSTED_FABRIC": "1",  # UCX sends plain data between hosts
        }).returncode


sys.exit(main())
