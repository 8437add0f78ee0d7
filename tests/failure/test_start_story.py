# SPDX-License-Identifier: Apache-2.0
"""MEMSPAN_LOG_LEVEL=DEBUG tells how a start went; a level that there is not is an error, and messages
say each thing once."""

import unittest

import jobs

STORY = [
    r"shmem_init: process: memspan [\d.]+, process \d+ is PE {rank} of 2, {how}",
    r"shmem_init: where: host \S+, \d+ cores? for this process; waits ",
    r"shmem_init: memory: a symmetric heap of 1 GiB at 0x[0-9a-f]+, taken at {commit}; .* variables are "
    r"symmetric; .* may be taken \(",
    r"shmem_init: all PEs are on one node; 1 PE\(s\) of this node by mapped: ",
    r"shmem_init: route: loads and stores reach 2 of 2 PEs",
    r"shmem_init: time: joining [\d.]+ ms, mapping [\d.]+ ms, barrier [\d.]+ ms, .*; [\d.]+ ms in all",
]


class StartStoryTest(unittest.TestCase):
    def check(self, errors, rank, **words):
        for line in STORY:
            for word, text in {"rank": str(rank), **words}.items():
                line = line.replace("{" + word + "}", text)
            self.assertRegex(errors, rf"memspan: PE {rank}: {line}")

    def test_under_oshrun(self):
        code, _, errors = jobs.finish(jobs.oshrun(2, "hello", MEMSPAN_LOG_LEVEL="DEBUG", MEMSPAN_COMMIT="allocation"))
        self.assertEqual(code, 0, errors)
        for rank in range(2):
            self.check(errors, rank, how="started by oshrun", commit="allocation")

    def test_by_hand(self):
        processes = jobs.by_hand(2, "hello", MEMSPAN_LOG_LEVEL="DEBUG")
        for rank, process in enumerate(processes):
            code, _, errors = jobs.finish(process)
            self.assertEqual(code, 0, errors)
            self.check(errors, rank, how=r"met the others at tcp://127\.0\.0\.1:\d+ \(a store of PE 0\)",
                       commit="the first use of each page")

    def test_nothing_is_told_otherwise(self):
        for level in ("WARN", ""):
            code, _, errors = jobs.finish(jobs.oshrun(2, "hello", MEMSPAN_LOG_LEVEL=level))
            self.assertEqual((code, errors), (0, ""))

    def test_one_line_of_routes_is_told_at_info(self):
        code, _, errors = jobs.finish(jobs.oshrun(2, "hello", MEMSPAN_LOG_LEVEL="INFO"))
        self.assertEqual(code, 0, errors)
        lines = errors.splitlines()
        self.assertEqual(len(lines), 2, errors)
        for line in lines:
            self.assertIn("shmem_init: all PEs are on one node; 1 PE(s) of this node by mapped", line)

    def test_a_wrong_level_is_an_error(self):
        for variable in ("MEMSPAN_LOG_LEVEL", "SHMEM_LOG_LEVEL"):
            code, _, errors = jobs.finish(jobs.oshrun(2, "hello", **{variable: "LOUD"}))
            self.assertNotEqual(code, 0)
            self.assertIn(f'{variable} is "LOUD"; allowed are DEBUG, INFO, WARN, ERROR and FATAL', errors)

    def test_a_message_says_each_step_once(self):
        job = jobs.start([jobs.VICTIM, "hello"], RANK="1", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                         MASTER_PORT=str(jobs.free_port()), MEMSPAN_INIT_TIMEOUT="1")
        _, _, errors = jobs.finish(job)
        self.assertEqual(errors.count("joining the job: "), 1, errors)


if __name__ == "__main__":
    unittest.main()
