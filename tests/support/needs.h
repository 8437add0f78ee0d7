/* SPDX-License-Identifier: Apache-2.0
 * What a test needs of the machine, by the names of support/machine.py. A test that needs what the
 * machine lacks is skipped with a reason that begins with "needs=NAME"; scripts/test.sh fails if
 * the probe finds that the machine has it. A test that is not meant for this build, number of
 * processes or parameter begins with "does not apply:". */
#ifndef MEMSPAN_TESTS_SUPPORT_NEEDS_H
#define MEMSPAN_TESTS_SUPPORT_NEEDS_H

#ifdef __cplusplus
extern "C"
#endif
    /* 1: the machine lacks it. Asks MEMSPAN_TEST_LACKS, or runs the probe if that is not set. */
    int
    machine_lacks(const char* name);

#ifdef __cplusplus
extern "C"
#endif
    /* 1: the test runs in QEMU's user mode, which lacks it. */
    int
    emulator_lacks(const char* name);

/* At the beginning of a test, or of SetUp(). */
#define MEMSPAN_NEEDS(name)                                            \
  do {                                                                 \
    if (emulator_lacks(name) != 0)                                     \
      GTEST_SKIP() << "does not apply: the emulator lacks " << (name); \
    if (machine_lacks(name) != 0) GTEST_SKIP() << "needs=" << (name);  \
  } while (false)

#endif
