# SPDX-License-Identifier: Apache-2.0
"""examples/kubernetes and the Dockerfile of the root: the linters find nothing, and the manifest's pods do their job. What this cannot
show without a cluster and a container runtime: that the image builds from its base, that Kubernetes' own
DNS knows the names, that its admission takes the pods."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import pods
from dockerfile import Context
from jobs.namespaces import Namespaces
from needs import needs

SOURCE = os.environ["MEMSPAN_SOURCE"]
EXAMPLE = os.path.join(SOURCE, "examples", "kubernetes")
MANIFEST = os.path.join(EXAMPLE, "ring.yaml")
DOCKERFILE = os.path.join(EXAMPLE, "Dockerfile")
IMAGE = os.path.join(SOURCE, "Dockerfile")


def tool(name, *arguments):
    command = [os.path.join(os.path.dirname(sys.executable), name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=EXAMPLE)


class LintTest(unittest.TestCase):
    def expect_clean(self, *command):
        result = tool(*command)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def expect_finding(self, line, replacement, path, *command):
        """The linter is one that finds something: with that line replaced it fails."""
        with open(path) as file, tempfile.NamedTemporaryFile("w", suffix=os.path.basename(path)) as wrong:
            text = file.read()
            self.assertIn(line, text)
            wrong.write(text.replace(line, replacement, 1))
            wrong.flush()
            result = tool(*command, wrong.name)
            self.assertNotEqual(result.returncode, 0, result.stdout)

    def test_the_dockerfiles(self):
        self.expect_clean("hadolint", DOCKERFILE, IMAGE)
        self.expect_finding("WORKDIR /src", "WORKDIR src", DOCKERFILE, "hadolint")

    def test_the_manifest_is_tidy_yaml(self):
        self.expect_clean("yamllint", "--strict", MANIFEST)
        self.expect_finding("spec:\n", "spec: \n", MANIFEST, "yamllint", "--strict")

    def test_the_manifest_is_of_kubernetes_schema(self):
        for version in ("1.27", "1.37"):
            self.expect_clean("kubernetes-validate", "--strict", "-k", version, MANIFEST)
        self.expect_finding("completions: 4", "completion: 4", MANIFEST, "kubernetes-validate", "--strict")


class DockerfileTest(unittest.TestCase):
    def test_that_of_the_root_runs_the_readme_s_first_command(self):
        steps = pods.instructions(IMAGE)
        with open(os.path.join(SOURCE, "README.md")) as file:
            command = next(line.strip() for line in file if line.startswith("bash examples/matmul_allreduce/"))
        self.assertIn(("RUN", command), steps)
        (program,) = [rest for instruction, rest in steps if instruction == "CMD"]
        words = command.split()
        self.assertEqual(json.loads(program)[3:], ["matmul_allreduce", *words[words.index("-M"):]])
        context = Context(SOURCE)
        for instruction, rest in steps:
            if instruction == "COPY" and not rest.startswith("--from"):
                self.assertTrue([name for name in context.names if rest.split()[0] in (".", name) or name.startswith(rest.split()[0])], rest)
        self.assertIn("tests/install/install_test.sh", context.names)  # .dockerignore has a folder of that name in the root
        self.assertTrue(context.ignores("install/lib") and context.ignores("python/memspan/__pycache__/x.pyc"))

    def test_what_it_copies_and_sets_is_there(self):
        steps = pods.instructions(DOCKERFILE)
        for instruction, rest in steps:
            if instruction == "COPY" and not rest.startswith("--from"):
                self.assertTrue(os.path.exists(os.path.join(SOURCE, rest.split()[0])), rest)
        (build,) = [rest for instruction, rest in steps if instruction == "RUN" and rest.startswith("cmake ")]
        with open(os.path.join(os.environ["MEMSPAN_BUILD"], "CMakeCache.txt")) as cache:
            known = cache.read()
        for name in ("MEMSPAN_BUILD_TESTS", "MEMSPAN_BUILD_EXAMPLES", "MEMSPAN_BUILD_BENCHMARKS"):
            self.assertEqual(pods.option(build, name), ["OFF"])
            self.assertIn(f"\n{name}:BOOL=", known)
        self.assertIn(("COPY", "--from=build /opt/memspan /opt/memspan"), steps)
        self.assertEqual(pods.option(build, "CMAKE_INSTALL_PREFIX"), ["/opt/memspan"])


@needs("hosts")
class PodsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        os.chmod(self.folder, 0o755)  # the pods' user goes through it
        self.manifest = pods.load(MANIFEST)
        self.hosts = Namespaces(self.manifest["Job"]["spec"]["completions"])
        self.addCleanup(self.hosts.close)
        self.hosts.__enter__()
        subprocess.run(["cmake", "--install", os.environ["MEMSPAN_BUILD"], "--prefix",
                        os.path.join(self.folder, "opt", "memspan")], check=True, capture_output=True)
        (program,) = [rest for instruction, rest in pods.instructions(DOCKERFILE)
                      if instruction == "RUN" and "/oshcc " in rest]
        result = pods.run_in_image(self.hosts, self.folder, SOURCE, program)
        self.assertEqual(result.returncode, 0, result.stderr)

    def run_pods(self, secret="the secret of these pods"):
        return pods.Pods(self.manifest, self.hosts, self.folder, secret).run()

    def test_the_job_succeeds(self):
        spec = self.manifest["Job"]["spec"]
        self.assertEqual((spec["completionMode"], spec["parallelism"]), ("Indexed", spec["completions"]))
        ends = self.run_pods()
        self.assertEqual([code for code, _, _ in ends], [0] * spec["completions"], ends)
        self.assertRegex(ends[0][1], rf"^ring: {spec['completions']} PEs, .* PASS")
        self.assertEqual("".join(errors for _, _, errors in ends), "")

    def test_the_mounted_secret_itself_is_refused(self):
        """Why the manifest copies it; and the secret does count."""
        container = self.manifest["Job"]["spec"]["template"]["spec"]["containers"][0]
        (secret,) = [entry for entry in container["env"] if entry["name"] == "MEMSPAN_JOB_SECRET_FILE"]
        secret["value"] = "/run/mounted-secret/secret"
        container["volumeMounts"].append({"name": "mounted-secret", "mountPath": "/run/mounted-secret"})
        for code, _, errors in self.run_pods():
            self.assertNotEqual(code, 0)
            self.assertRegex(errors, "MEMSPAN_JOB_SECRET_FILE.*/run/mounted-secret/secret")


if __name__ == "__main__":
    unittest.main()
