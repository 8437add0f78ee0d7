# SPDX-License-Identifier: Apache-2.0
"""Runs the pods of an Indexed Job as a kubelet would, without containers: each in a network namespace,
with process ids and mounts of its own. Everything is taken from the manifest: commands, environment,
volumes, users, capabilities. The image is a folder of this machine, mounted where the image has it."""

import os
import shlex
import subprocess

import yaml

import jobs
from dockerfile import instructions  # noqa: F401  # for the tests

IMAGE_PATH = "/opt/memspan/bin:/usr/bin:/bin"
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"

# Arguments: the image's folder, the hosts file, then SOURCE TARGET MODE of each mount, "--", and the command.
# /run and /opt are the image's own, so that the mount points are made there and not on this machine.
_IN_POD = r"""
mount --bind "$1" /opt
mount --bind "$2" /etc/hosts
mount -t tmpfs pod /run
mount -t tmpfs -o mode=1777,size=64M pod /dev/shm
shift 2
while [ "$1" != -- ]; do
  mkdir -p "$2"
  mount --bind "$1" "$2"
  [ "$3" = rw ] || mount -o remount,bind,ro "$2"
  shift 3
done
shift
[ "$MEMSPAN_TEST_READ_ONLY" != yes ] || mount -o remount,bind,ro /
exec "$@"
"""


def load(path):
    """{kind: document}"""
    with open(path) as file:
        return {document["kind"]: document for document in yaml.safe_load_all(file)}


def environment_of(container, index):
    """What the container's processes are given; nothing of this process's environment."""
    made = {"PATH": IMAGE_PATH}
    for entry in container.get("env", []):
        if "value" in entry:
            made[entry["name"]] = entry["value"]
        elif entry["valueFrom"]["fieldRef"]["fieldPath"] == INDEX:
            made[entry["name"]] = str(index)
        else:
            raise AssertionError(f"a kubelet would know it, this test does not: {entry}")
    return made


class Pods:
    """The pods of `manifest` on `hosts`, one on each; `folder` has the image as `opt`."""

    def __init__(self, manifest, hosts, folder, secret):
        self._job, service = manifest["Job"], manifest["Service"]
        self._hosts, self._folder, self._secret = hosts, folder, secret
        self._pod = self._job["spec"]["template"]["spec"]
        name = self._job["metadata"]["name"]
        # A pod has a name below the Service's only when it says so and the Service selects it.
        labels = self._job["spec"]["template"]["metadata"]["labels"]
        assert service["spec"]["clusterIP"] == "None" and service["spec"]["selector"].items() <= labels.items()
        domain = self._pod["subdomain"]
        assert domain == service["metadata"]["name"]
        self._names = os.path.join(folder, "hosts")
        with open(self._names, "w") as file:
            file.write("127.0.0.1 localhost\n")
            for index, address in enumerate(hosts.addresses):
                file.write(f"{address} {name}-{index}.{domain}.default.svc.cluster.local {name}-{index}.{domain}\n")
        self.size = self._job["spec"]["completions"]

    def _volumes(self, index):
        """{name: folder}, as the kubelet makes them: open to the pod's group."""
        group = self._pod["securityContext"]["fsGroup"]
        made = {}
        for volume in self._pod["volumes"]:
            path = os.path.join(self._folder, f"{volume['name']}-{index}")
            os.mkdir(path)
            if "secret" in volume:  # a link to a link to a file of root's
                os.mkdir(os.path.join(path, "..2026"))
                with open(os.path.join(path, "..2026", "secret"), "w") as file:
                    file.write(self._secret)
                os.chown(file.name, 0, group)
                # YAML reads 0440 as an octal number.
                os.chmod(file.name, volume["secret"]["defaultMode"])
                os.symlink("..2026", os.path.join(path, "..data"))
                os.symlink("..data/secret", os.path.join(path, "secret"))
                os.chmod(os.path.join(path, "..2026"), 0o755)
                os.chmod(path, 0o755)
            else:
                assert volume["emptyDir"]["medium"] == "Memory"
                os.chown(path, 0, group)
                os.chmod(path, 0o2777)
            made[volume["name"]] = path
        return made

    def _start(self, container, index, volumes):
        mounts = []
        for mount in container["volumeMounts"]:
            mounts += [volumes[mount["name"]], mount["mountPath"], "ro" if mount.get("readOnly") else "rw"]
        pod, own = self._pod["securityContext"], container["securityContext"]
        assert own["capabilities"]["drop"] == ["ALL"] and not own["allowPrivilegeEscalation"]
        user = ["setpriv", f"--reuid={pod['runAsUser']}", f"--regid={pod['runAsGroup']}", f"--groups={pod['fsGroup']}",
                "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
        variables = [f"{name}={value}" for name, value in environment_of(container, index).items()]
        words = ["env", "-i", *variables, *container["command"], *container.get("args", [])]
        return jobs.start(
            [*self._hosts.inside(index), "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
             "sh", "-ec", _IN_POD, "sh", os.path.join(self._folder, "opt"), self._names, *mounts, "--", *user, *words],
            MEMSPAN_TEST_READ_ONLY="yes" if own["readOnlyRootFilesystem"] else "no")

    def run(self):
        """(code, stdout, stderr) of each pod's last container."""
        volumes = [self._volumes(index) for index in range(self.size)]
        for container in self._pod.get("initContainers", []):
            for index in range(self.size):
                end = jobs.finish(self._start(container, index, volumes[index]))
                if end[0] != 0:
                    return [end]
        (container,) = self._pod["containers"]
        processes = [self._start(container, index, volumes[index]) for index in range(self.size)]
        return [jobs.finish(process) for process in processes]


def run_in_image(hosts, folder, source, command):
    """A command of a Dockerfile's, run as root in the image that is built, in the source's folder."""
    script = 'mount --bind "$1" /opt; cd "$2"; exec sh -ec "$3"'
    return subprocess.run(
        [*hosts.inside(0), "unshare", "--mount", "sh", "-ec", script, "sh", os.path.join(folder, "opt"), source, command],
        capture_output=True, text=True, check=False)


def option(command, name):
    """The values that a command line gives to -Dname=value."""
    return [word.split("=", 1)[1] for word in shlex.split(command) if word.startswith(f"-D{name}=")]
