# SPDX-License-Identifier: Apache-2.0
"""Jobs without a launcher: they meet, or say who did not come."""

import os
import unittest

import jobs
from needs import needs


class ByHandTest(unittest.TestCase):
    def test_processes_meet_by_torchruns_variables(self):
        outputs = [jobs.finish(process) for process in jobs.by_hand(4, "hello")]
        for rank, (code, out, errors) in enumerate(outputs):
            self.assertEqual((code, out), (0, f"hello {rank} of 4\n"), errors)

    @needs("userfaultfd")
    @unittest.skipIf("thread" in os.environ["MEMSPAN_SANITIZE"], "does not apply: TSan has its own data among the variables")
    def test_a_thread_may_write_to_static_variables_meanwhile(self):
        writer = os.path.join(os.environ["MEMSPAN_BUILD"], "tests", "failure_writer")
        for process in jobs.by_hand_at(jobs.free_port(), 2, [writer]):
            code, _, errors = jobs.finish(process)
            self.assertEqual((code, errors), (0, ""))

    def test_a_process_alone_is_a_job_of_one(self):
        code, out, errors = jobs.finish(jobs.start([jobs.VICTIM, "hello"]))
        self.assertEqual((code, out), (0, "hello 0 of 1\n"), errors)

    def test_a_missing_process_is_named_at_the_time_out(self):
        port = str(jobs.free_port())
        job = jobs.start(
            [jobs.VICTIM, "hello"],
            RANK="0",
            WORLD_SIZE="3",
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=port,
            MEMSPAN_INIT_TIMEOUT="1",
        )
        code, _, errors = jobs.finish(job)
        self.assertNotEqual(code, 0)
        self.assertRegex(errors, r"\b1\b.*\b2\b")

    def test_nobody_at_the_address_is_named(self):
        port = jobs.free_port()
        job = jobs.start(
            [jobs.VICTIM, "hello"],
            RANK="1",
            WORLD_SIZE="2",
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
            MEMSPAN_INIT_TIMEOUT="1",
        )
        code, _, errors = jobs.finish(job)
        self.assertNotEqual(code, 0)
        self.assertIn(f"127.0.0.1:{port + 11}", errors)

    def test_another_launchers_process_is_not_alone(self):
        code, _, errors = jobs.finish(jobs.start([jobs.VICTIM, "hello"], OMPI_COMM_WORLD_SIZE="2"))
        self.assertNotEqual(code, 0)
        self.assertIn("OMPI_COMM_WORLD_SIZE", errors)


if __name__ == "__main__":
    unittest.main()
