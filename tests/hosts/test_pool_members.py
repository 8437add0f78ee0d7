# SPDX-License-Identifier: Apache-2.0
"""What docs/reliability.md promises of pools between hosts when members leave (row 7), die and come back
(row 8): nobody reads bytes that are not those of the member, and a process that was taken for dead writes nothing
any more once another one has its rank."""

import contextlib
import signal
import time
import unittest

import jobs
from needs import needs
from pool_jobs import ROUNDS, NoMember, PoolJobs

LEFT_BOUND_S = 0.2  # until the others are told
DEATH_BOUND_S = 1.0
USABLE_BOUND_S = 1.0
# A link that is silent is lost after 2 s, a lease after 3 s; both are looked for now and then.
SILENCE_BOUND_S = 3.5
OUR_SEED, OTHER_SEED, OLD_SEED, NEW_SEED = 11, 12, 77, 80


@needs("nft")
class PoolMembersTest(PoolJobs):
    def setUp(self):
        super().setUp()
        self.store, self.url = self.start_store()

    def begin(self):
        """Ranks 0 and 1, on the hosts 0 and 1, with bytes of theirs."""
        near, far = self.member(0, 0, self.url), self.member(1, 1, self.url)
        self.assertEqual((near("fill", OUR_SEED), far("fill", OTHER_SEED)), ("ok", "ok"))
        self.assertEqual((near("read", 1, OTHER_SEED), far("read", 0, OUR_SEED)), ("ok", "ok"))
        return near, far

    def expect_intact(self, near, far):
        for member, ranks in ((near, (1, OTHER_SEED)), (far, (0, OUR_SEED))):
            self.assertEqual(member("read", *ranks), "ok")
        self.assertEqual((near("own", OUR_SEED), far("own", OTHER_SEED)), ("ok", "ok"))

    def test_a_member_leaves_and_joins_under_load(self):  # row 7
        near, far = self.begin()
        guest = self.member(1, 2, self.url)
        self.assertEqual(near("until", 2, 2)[:2], "ok")
        for member in (near, far):
            member("load", 2, 2)
        left, back = [], []
        for _ in range(10 * ROUNDS):
            near.send("lost", 2)
            gone = guest("leave")
            answer = near.receive()
            self.assertIn("rank 2", answer)
            left.append(self.at(answer, "failed at") - self.at(gone))
            near.send("until", 2, 2)
            joined = guest("join")
            back.append(self.at(near.receive()) - self.at(joined))
        for member in (near, far):
            done, ok, wrong, refused, other = member("end").split()
            self.assertEqual((done, wrong, other), ("done", "0", "0"), member)
            self.assertGreater(min(int(ok), int(refused)), 0)
        self.expect_intact(near, far)
        self.report("the others see a leave after", left)
        self.report("the others read again after a join", back)
        self.assertLess(max(left), LEFT_BOUND_S)
        self.assertLess(max(back), USABLE_BOUND_S)

    def come_back(self, others, host, since, bound_s):
        """Rank 2 once more, with other memory: seconds until the others read it. It is started again, as by who
        keeps members alive, while its rank is not free: a link is lost before a lease is."""
        while True:
            try:
                fresh = self.member(host, 2, self.url)
                break
            except NoMember as why:
                self.assertIn("rank 2 is taken", str(why))
                self.assertLess(time.monotonic() - since, bound_s)
        self.assertEqual(fresh("fill", NEW_SEED), "ok")
        usable = max(self.at(member("until", 2, NEW_SEED)) for member in others) - since
        self.assertLess(usable, bound_s)
        return fresh, usable

    def test_a_member_is_killed_and_comes_back(self):  # row 8
        near, far = self.begin()
        lost, usable = [], []
        for number in range(2 * ROUNDS):
            old = self.member(1, 2, self.url)
            near("until", 2, 2)
            for member in (near, far):
                member("load", 2, 2)
                member.send("lost", 2)
            died = time.monotonic()
            old.signal(signal.SIGKILL)
            times = [self.at(member.receive(), "failed at") for member in (near, far)]
            lost += [at - died for at in times]
            for member in (near, far):
                self.assertEqual(member("end").split()[2:5:2], ["0", "0"])
            fresh, took = self.come_back((near, far), number % 2, max(times), USABLE_BOUND_S)
            usable.append(took)
            self.expect_intact(near, far)
            fresh.kill()
        self.report("a killed member is missed after", lost)
        self.report("its successor is read after", usable)
        self.assertLess(max(lost), DEATH_BOUND_S)

    def trial_of_an_old_writer(self, befalls, ends):
        """Rank 2 writes to rank 0 all the time; it is cut off and taken for dead, another process has its rank,
        and the old one goes on: not a byte of it arrives, at rank 0 or at its successor."""
        near, far = self.begin()
        old = self.member(1, 2, self.url)
        old("flood", 0, OLD_SEED)
        self.assertEqual(near("until", 2, 2)[:2], "ok")
        self.assertEqual(far("until", 0, OLD_SEED)[:2], "ok")
        since = time.monotonic()
        with befalls(old):
            lost = self.at(near("lost", 2), "failed at") - since
            fresh, usable = self.come_back((near,), 0, since, SILENCE_BOUND_S + USABLE_BOUND_S)
            self.assertEqual(near("fill", OUR_SEED), "ok")
            watch = jobs.Stopwatch()
            if not ends:
                self.look_at(near, fresh, watch)
        if ends:
            self.look_at(near, fresh, watch)
        done, _, _, refused, _ = old("end").split()
        self.assertEqual(done, "done")
        self.assertGreater(int(refused), 0)
        self.assertIn("failed", old("write", 0, OLD_SEED))
        self.assertEqual(old("fill", OLD_SEED), "ok")  # its own memory is nobody's any more
        self.assertEqual((near("own", OUR_SEED), fresh("own", NEW_SEED), near("read", 2, NEW_SEED)), ("ok", "ok", "ok"))
        for member in (old, fresh, near, far):
            member.kill()
        self.assertLess(lost, SILENCE_BOUND_S)
        return lost, usable

    def look_at(self, near, fresh, watch):
        """For a second, at the memory that the old writer would write."""
        while watch.seconds() < 1:
            self.assertEqual((near("own", OUR_SEED), fresh("own", NEW_SEED)), ("ok", "ok"))

    @contextlib.contextmanager
    def stopped(self, old):
        old.signal(signal.SIGSTOP)
        yield
        old.signal(signal.SIGCONT)

    @contextlib.contextmanager
    def away_from_the_store(self, _):
        self.filter(1, f"ip saddr {self.hosts.addresses[2]}")
        self.filter(2, f"ip saddr {self.hosts.addresses[1]}")
        try:
            yield
        finally:
            self.filter(1)
            self.filter(2)

    @contextlib.contextmanager
    def away_from_all(self, _):
        with self.silence(1):
            yield

    def repeat(self, what, befalls, ends):
        trials = [self.trial_of_an_old_writer(befalls, ends) for _ in range(max(1, ROUNDS // 2))]
        self.report(f"{what}: lost after", [lost for lost, _ in trials])
        self.report(f"{what}: its successor is read after", [usable for _, usable in trials])

    def test_a_stopped_writer_goes_on_after_its_rank_was_taken(self):  # row 8
        self.repeat("stopped", self.stopped, ends=True)

    def test_a_stopped_writer_on_the_host_goes_on_after_its_rank_was_taken(self):  # row 8
        near, far = self.begin()
        old = self.member(0, 2, self.url)
        old("flood", 0, OLD_SEED)
        self.assertEqual(near("until", 0, OLD_SEED)[:2], "ok")
        since = time.monotonic()
        with self.stopped(old):
            lost = self.at(near("lost", 2), "failed at") - since
            fresh, usable = self.come_back((near, far), 0, since, SILENCE_BOUND_S + USABLE_BOUND_S)
        # The piece that the stop interrupted may arrive, and none after it.
        self.assertIn("lost its rank 2", old("write", 0, OLD_SEED))
        self.assertEqual(old("end").split()[0], "done")
        self.assertEqual(near("fill", OUR_SEED), "ok")
        old("flood", 0, OLD_SEED)
        self.look_at(near, fresh, jobs.Stopwatch())
        done, ok, wrong, refused, other = old("end").split()
        self.assertEqual((done, ok, wrong, other), ("done", "0", "0", "0"))
        self.assertGreater(int(refused), 0)
        self.expect_intact(near, far)
        self.assertIn("lost its rank 2", old("read", 0, OUR_SEED))
        self.report("stopped on the same host: lost after", [lost])
        self.report("stopped on the same host: its successor is read after", [usable])
        self.assertLess(lost, SILENCE_BOUND_S)

    def test_a_writer_goes_on_that_only_the_store_has_lost(self):  # row 8
        self.repeat("away from the store", self.away_from_the_store, ends=False)

    def test_the_host_of_a_writer_is_cut_off_and_comes_back(self):  # row 8
        self.repeat("host cut off", self.away_from_all, ends=True)


if __name__ == "__main__":
    unittest.main()
