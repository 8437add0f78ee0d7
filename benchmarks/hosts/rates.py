# SPDX-License-Identifier: Apache-2.0
"""What the figures of hosts_rates (rates.c) are called in the record."""

NAMES = {"put+quiet": "put + quiet", "allreduce": "all-reduce"}


def name_and_size(name, size, unit):
    """('put', '64 KiB') of a bandwidth; a time has the bytes in its name, if they say anything."""
    text = next((f"{size >> shift} {unit_of}" for unit_of, shift in (("MiB", 20), ("KiB", 10)) if size >= 1 << shift), f"{size} bytes")
    if unit == "GB/s":
        return name, text
    name = NAMES.get(name, name)
    return (name if size == 0 or name == "fetch-add" else f"{name} of {text}"), None
