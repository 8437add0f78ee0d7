# SPDX-License-Identifier: Apache-2.0
"""The functions that there are for each type and size.

For each T of float, double, char, int8 ... int64, uint8 ... uint64:

- ``shmem_T_p(dst, value, pe)`` and ``shmem_T_g(src, pe)`` move one element;
- ``shmem_T_put`` and ``_get`` (dest, source, nelems, pe) several;
- ``shmem_T_iput`` and ``_iget`` (dest, source, dst, sst, nelems, pe) several that are apart.

For B of 8, 16, 32, 64 and 128 bits: ``shmem_putB`` and ``getB``, ``shmem_putB_nbi`` and ``getB_nbi``
(dest, source, nelems, pe), ``shmem_iputB`` and ``igetB`` (dest, source, dst, sst, nelems, pe),
``shmem_putB_signal`` and ``_signal_nbi`` (dest, source, nelems, sig, signal, sig_op, pe).

For each T of int32, int64, uint32 and uint64:

- ``shmem_T_wait_until`` and ``_test`` (ivar, cmp, cmp_value), and for many words ``_all``, ``_any`` and
  ``_some`` (ivars, nelems, status, cmp, cmp_value) and the same with ``_vector`` (... cmp_values);
- ``shmem_T_atomic_fetch(source, pe)``, ``_set`` and ``_swap`` (dest, value, pe), also of float and
  double;
- ``shmem_T_atomic_compare_swap(dest, cond, value, pe)``, ``_add``, ``_and``, ``_or``, ``_xor`` and
  ``_fetch_add`` ... (dest, value, pe).

For all but char, ``shmem_T_sum_reduce``, ``_prod``, ``_min`` and ``_max`` (dest, source, nreduce, team); for
integers ``_and``, ``_or`` and ``_xor``.

Each also has the name ``aclshmem_...``, except waits and tests. Those of that name exist for all T but
double, and also store what they return if you pass ``res_out`` (a C int for ``_test`` and
``_test_all``, a size_t for the others) and ``indices`` (a size_t for each word, before ``status``).
``aclshmem_T_wait(ivar, cmp_value)`` waits until the word is another value.

Elements, ``nelems`` and strides count elements of the type, not bytes. ``shmem.moves`` describes
arguments and exceptions.
"""

from memspan._core.typed import *  # noqa: F403
