# SPDX-License-Identifier: Apache-2.0
"""The end of a message for which ``memspan-explain`` has a remedy. As in C++ (src/core/status.h), it is declared in the
file that makes the message, as a constant of the module, with three plain double-quoted strings:
tools/explain/collect_remedies.cmake copies them into memspan-explain.
"""


def remedy(identifier: str, meaning: str, action: str) -> str:
    """The end of the message, which names the identifier."""
    return f" [memspan-explain {identifier}]"
