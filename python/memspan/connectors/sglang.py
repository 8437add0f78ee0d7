# SPDX-License-Identifier: Apache-2.0
"""memspan under SGLang's disaggregation, without a change of SGLang.

    MEMSPAN_SGLANG=1 python -m sglang.launch_server --disaggregation-transfer-backend mooncake ...

moves KV caches by memspan: what imports ``mooncake.engine`` gets ``memspan.mooncake``, in each of SGLang's
processes (``memspan_autoload.mooncake_finder``). Your own launcher may call it in Python:

    import memspan.connectors.sglang
    memspan.connectors.sglang.install()     # before SGLang is imported

The backend ``ascend`` needs nothing: it imports ``memfabric_hybrid``, which is memspan's. MEMSPAN_STORE
says where the store is; the first engine hosts it.
"""

import os

from memspan_autoload import mooncake_finder


def install() -> None:
    """Puts memspan in the place of ``mooncake``, also of one that is installed, here and in the processes that this
    one starts from now on (by MEMSPAN_SGLANG). RuntimeError when ``mooncake`` is imported already."""
    mooncake_finder.install(replaces=True)
    os.environ[mooncake_finder.VARIABLE] = mooncake_finder.REPLACE
