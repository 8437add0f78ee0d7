# SPDX-License-Identifier: Apache-2.0
"""memspan under SGLang's disaggregation, without a change of SGLang.

    import memspan.connectors.sglang
    memspan.connectors.sglang.install()     # before SGLang is imported

Then ``--disaggregation-transfer-backend mooncake`` moves KV caches by memspan: what imports
``mooncake.engine`` gets ``memspan.mooncake``. The backend ``ascend`` needs nothing: it imports
``memfabric_hybrid``, which is memspan's. MEMSPAN_STORE_URL says where the store is; the first engine
hosts it.
"""

import sys
import types

from memspan import mooncake


def install() -> None:
    """Puts memspan in the place of ``mooncake``. RuntimeError when that is imported already."""
    known = sys.modules.get("mooncake")
    if known is not None and not hasattr(known, "memspan"):
        raise RuntimeError("mooncake is imported already; install() comes before that")
    package = types.ModuleType("mooncake", "memspan in Mooncake's place")
    package.__path__ = []
    vars(package).update(memspan=True, engine=mooncake)
    sys.modules["mooncake"] = package
    sys.modules["mooncake.engine"] = mooncake
