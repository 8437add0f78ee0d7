# SPDX-License-Identifier: Apache-2.0
"""Compiles what needs PyTorch's headers ahead of time (memspan.torch.native).

    python -m memspan.torch.build [--out FOLDER | --flags]

FOLDER is what MEMSPAN_TORCH_BUILD_DIR says later, also to other users; without it, everything goes
to where this user's processes look for it. --flags prints the compiler's flags, one per line, for
tools that read C++.
"""

import argparse
import os
import sys
import time

from memspan.torch import native


def main():
    parser = argparse.ArgumentParser(
        prog="python -m memspan.torch.build",
        description="Compiles what needs PyTorch's headers ahead of time.",
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--out", metavar="FOLDER", help="what MEMSPAN_TORCH_BUILD_DIR says later, also to others"
    )
    instead.add_argument(
        "--flags", action="store_true", help="prints the compiler's flags, and compiles nothing"
    )
    given = parser.parse_args()
    if given.flags:
        print("\n".join(native.compile_flags()))
        return 0
    out = given.out
    failed = 0
    for name, piece in native.PIECES.items():
        if not os.path.exists(piece.source):
            continue
        begin = time.monotonic()
        try:
            path = native.build(name, None if out is None else os.path.abspath(out))
        except native.CannotBuild as reason:
            print(f"memspan.torch.build: {name}: {reason}", file=sys.stderr)
            failed = 1
            continue
        print(f"{name}: ready after {time.monotonic() - begin:.1f} s: {path}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
