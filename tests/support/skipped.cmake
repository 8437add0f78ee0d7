# How ctest knows a run that skipped something, as SKIP_REGULAR_EXPRESSION. ctest does not look at the exit code of a run
# that matches, so each of these matches the end of a run that passed, and of no other (tests/scripts/skipped_test.cmake).
# A program of its own exits with 77 (SKIP_RETURN_CODE).

# Python's unittest says `FAILED (failures=1, skipped=1)`, too.
set(MEMSPAN_UNITTEST_SKIPPED "OK \\(skipped=")
# GoogleTest lists what failed behind what was skipped. Only skips for want of something in the machine count.
set(MEMSPAN_GTEST_SKIPPED "needs=.*\n\\[  SKIPPED \\] [0-9]+ tests?, listed below:\n(\\[  SKIPPED \\] [^\n]*\n*)+$")
