# SPDX-License-Identifier: Apache-2.0
"""MemFabric from Python. Programs import it as ``mf_smem``, ``memfabric_hybrid`` or ``mf_adapter``;
this package has the contents of all three."""
