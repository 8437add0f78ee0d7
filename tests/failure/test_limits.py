# SPDX-License-Identifier: Apache-2.0
"""Too little memory is an error with numbers, found without filling the machine."""

import os
import re
import subprocess
import tempfile
import unittest

import jobs
from needs import needs


class LimitsTest(unittest.TestCase):
    def test_a_heap_larger_than_memory_names_both_sizes(self):
        job = jobs.oshrun(2, "hello", SHMEM_SYMMETRIC_SIZE="8g", MEMSPAN_MEMORY_LIMIT="1g")
        code, _, errors = jobs.finish(job)
        self.assertNotEqual(code, 0)
        self.assertIn("8 GiB", errors)
        self.assertIn("1 GiB", errors)

    def test_a_default_heap_gets_smaller_where_there_is_less(self):
        for limit, size in (("700m", "512 MiB"), ("300m", "256 MiB"), ("40m", "32 MiB")):
            for processes in ([jobs.oshrun(2, "hello", MEMSPAN_MEMORY_LIMIT=limit, MEMSPAN_LOG_LEVEL="INFO")],
                              jobs.by_hand(2, "hello", MEMSPAN_MEMORY_LIMIT=limit, MEMSPAN_LOG_LEVEL="INFO")):
                ended = [jobs.finish(each) for each in processes]
                errors = "".join(each[2] for each in ended)
                self.assertTrue(all(code == 0 for code, _, _ in ended), errors)
                self.assertIn(f"heap has {size} instead of 1 GiB, since MEMSPAN_MEMORY_LIMIT allows no more", errors)
        code, _, errors = jobs.finish(jobs.oshrun(2, "hello", MEMSPAN_MEMORY_LIMIT="300m", SHMEM_SYMMETRIC_SIZE="1g"))
        self.assertNotEqual(code, 0)
        self.assertIn("a symmetric heap of 1 GiB", errors)

    @unittest.skipIf(os.environ["MEMSPAN_SANITIZE"], "does not apply: a sanitizer needs more addresses than the limit leaves")
    def test_a_default_heap_fits_the_addresses(self):
        for kib in (700_000, 300_000):
            limited = ["sh", "-c", f'ulimit -v {kib} && exec "$@"', "sh", jobs.OSHRUN, "-n", "2", "--timeout", "60"]
            code, out, errors = jobs.finish(jobs.start([*limited, jobs.VICTIM, "hello"]))
            self.assertEqual((code, out.count("hello")), (0, 2), errors)

    def test_a_wrong_size_is_an_error(self):
        for size in ("lots", "0", "-5", "nan"):
            code, _, errors = jobs.finish(jobs.oshrun(1, "hello", SHMEM_SYMMETRIC_SIZE=size))
            self.assertNotEqual(code, 0)
            self.assertIn(f'SHMEM_SYMMETRIC_SIZE is "{size}"', errors)

    def allocate(self, mib, **environment):
        program = os.environ["MEMSPAN_DEPARTURES"]
        command = [jobs.OSHRUN, "-n", "2", "--timeout", "60", program, "allocate", str(mib)]
        return jobs.finish(jobs.start(command, **environment))

    def test_memory_taken_at_touch_lets_programs_allocate_more_than_they_use(self):
        little = {"MEMSPAN_MEMORY_LIMIT": "80m", "SHMEM_SYMMETRIC_SIZE": "60m"}
        code, out, errors = self.allocate(50, **little)
        self.assertEqual((code, out.count("refused")), (0, 2), errors)
        code, out, errors = self.allocate(50, **little, MEMSPAN_COMMIT="touch")
        self.assertEqual(code, 0, errors)
        self.assertRegex(out, r"got [ab] \d")
        # A heap beyond the whole memory, of which a page is used.
        much = {"MEMSPAN_MEMORY_LIMIT": "80m", "SHMEM_SYMMETRIC_SIZE": "1g", "MEMSPAN_COMMIT": "touch"}
        code, out, errors = self.allocate(1000, **much)
        self.assertEqual(code, 0, errors)
        for line in re.findall(r"got .*", out):
            self.assertLess(int(line.split()[2]), 20 << 10, out)
        code, _, errors = self.allocate(1000, **{**much, "MEMSPAN_COMMIT": "allocation"})
        self.assertNotEqual(code, 0)
        self.assertIn("MEMSPAN_MEMORY_LIMIT", errors)

    def in_group_of_3_gib(self):
        """The beginning of a command that runs `departures WHAT MIB` on two PEs in a memory group of 3 GiB."""
        is_v1 = os.path.isdir("/sys/fs/cgroup/memory")
        root, limit = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes") if is_v1 else ("/sys/fs/cgroup", "memory.max")
        group = tempfile.mkdtemp(prefix="memspan-promise-", dir=root)
        self.addCleanup(os.rmdir, group)
        with open(os.path.join(group, limit), "w", encoding="ascii") as file:
            file.write(str(3 << 30))
        inside = ["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', group, jobs.OSHRUN, "-n", "2", "--timeout", "60"]
        return [*inside, os.environ["MEMSPAN_DEPARTURES"]]

    def promised(self, command, word):
        """A job that was promised memory; it ends when its input does."""
        job = jobs.start(command, stdin=subprocess.PIPE, SHMEM_SYMMETRIC_SIZE="2g")
        self.addCleanup(lambda: job.poll() is None and jobs.finish(job))
        for _ in range(2):
            jobs.read_until(job.stdout, word)
        return job

    @needs("memory_group")
    def test_a_promise_is_kept_when_other_programs_take_the_memory(self):
        """In a group of 3 GiB a job is promised 768 MiB, and another one asks for 2.5 GiB before they are touched."""
        for mode in ("promise", "allocation"):
            fill = [*self.in_group_of_3_gib(), "fill"]
            first = self.promised([*fill, "384"], "got")
            code, out, errors = jobs.finish(
                jobs.start([*fill, "1300"], SHMEM_SYMMETRIC_SIZE="2g", MEMSPAN_COMMIT=mode))
            self.assertEqual((code, out.count("refused")), (0, 2), (mode, out, errors))
            self.assertIn("may still be taken", errors)
            code, out, errors = jobs.finish(first)
            self.assertEqual((code, out.count("done")), (0, 2), (mode, out, errors))

    @needs("memory_group")
    def test_memory_touched_in_any_order_is_not_promised_twice(self):
        """256 MiB, touched from their end, count as promised until another job asks for all the rest."""
        command = self.in_group_of_3_gib()
        first = self.promised([*command, "fill-backwards", "128"], "touched")
        code, out, errors = jobs.finish(jobs.start([*command, "fill", "1300"], SHMEM_SYMMETRIC_SIZE="2g"))
        self.assertEqual((code, out.count("done")), (0, 2), (out, errors))
        code, out, errors = jobs.finish(first)
        self.assertEqual((code, out.count("done")), (0, 2), (out, errors))

    def test_the_moment_of_taking_memory_is_checked(self):
        code, _, errors = self.allocate(1, MEMSPAN_COMMIT="later")
        self.assertNotEqual(code, 0)
        self.assertIn('MEMSPAN_COMMIT is "later"; allowed are promise, allocation and touch', errors)
        each = 'if [ "$RANK" = 1 ]; then export MEMSPAN_COMMIT=touch; fi; exec "$@"'
        code, _, errors = jobs.finish(
            jobs.start([jobs.OSHRUN, "-n", "2", "--timeout", "30", "sh", "-c", each, "sh", jobs.VICTIM, "hello"]))
        self.assertNotEqual(code, 0)
        self.assertRegex(errors, r"MEMSPAN_COMMIT is \w+ in this process and \w+ in another one")

    def test_the_way_to_copy_is_checked_and_limits_hold(self):
        code, _, errors = self.allocate(1, MEMSPAN_COPY="pigeon")
        self.assertNotEqual(code, 0)
        self.assertIn('MEMSPAN_COPY is "pigeon"; allowed here are measured, library', errors)
        little = {"MEMSPAN_MEMORY_LIMIT": "80m", "SHMEM_SYMMETRIC_SIZE": "60m"}
        code, out, errors = self.allocate(30, **little)
        self.assertEqual((code, out.count("got ")), (0, 2), errors)
        code, out, errors = self.allocate(50, **little)
        self.assertEqual((code, out.count("refused")), (0, 2), errors)

    def test_sixty_four_heaps_of_a_gigabyte_cost_nothing_until_used(self):
        code, out, errors = jobs.finish(jobs.oshrun(64, "hello", SHMEM_SYMMETRIC_SIZE="1g"))
        self.assertEqual(code, 0, errors)
        self.assertEqual(out.count(" of 64"), 64)

    def run_heaps_after(self, mount):
        """With a mount that only the job sees."""
        job = jobs.start(
            ["unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh", jobs.OSHRUN, "-n", "2", jobs.UNITTEST, "--gtest_filter=Heap*"]
        )
        code, out, errors = jobs.finish(job)
        self.assertEqual(code, 0, out + errors)

    @needs("mounts")
    def test_a_small_dev_shm_does_not_matter(self):
        self.run_heaps_after("mount -t tmpfs -o size=1m none /dev/shm")

    @needs("mounts")
    def test_a_hidden_meminfo_does_not_matter(self):
        self.run_heaps_after("mount --bind /dev/null /proc/meminfo")


if __name__ == "__main__":
    unittest.main()
