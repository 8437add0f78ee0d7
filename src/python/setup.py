# SPDX-License-Identifier: Apache-2.0
"""``python3 setup.py bdist_wheel``: the wheel under the name `shmem`, as dist/shmem-....whl.

For instructions that say so: it is memspan's wheel (scripts/build_wheel.sh), with another name, so
only one of the two is to be installed. Takes the one of ``scripts/build.sh -python_extension``, and
builds it when there is none.
"""

import base64
import hashlib
import pathlib
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def memspans_wheel():
    folder = ROOT / "install" / "wheel"
    if not list(folder.glob("memspan-*.whl")):
        command = ["bash", str(ROOT / "scripts" / "build_wheel.sh"), "--out", str(folder)]
        subprocess.run(command, check=True)
    return max(folder.glob("memspan-*.whl"), key=lambda path: path.stat().st_mtime)


def line_of_record(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def rename(source, folder):
    """The wheel `source` as one of the name `shmem`; its path."""
    target = folder / source.name.replace("memspan-", "shmem-", 1)
    folder.mkdir(exist_ok=True)
    record = ""
    with zipfile.ZipFile(source) as given, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        for entry in given.infolist():
            if entry.is_dir():
                continue
            content = given.read(entry)
            place, _, rest = entry.filename.partition("/")
            if place.endswith(".dist-info"):
                entry.filename = f"{place.replace('memspan-', 'shmem-', 1)}/{rest}"
            if rest == "RECORD" and place.endswith(".dist-info"):
                record_entry = entry
                continue
            if rest == "METADATA" and place.endswith(".dist-info"):
                content = content.replace(b"\nName: memspan\n", b"\nName: shmem\n", 1)
            record += line_of_record(entry.filename, content)
            made.writestr(entry, content)
        made.writestr(record_entry, record + f"{record_entry.filename},,\n")
    return target


def main():
    if sys.argv[1:] != ["bdist_wheel"]:
        sys.exit(f"setup.py: {' '.join(sys.argv[1:]) or 'nothing'} is asked for; allowed is bdist_wheel")
    print(rename(memspans_wheel(), HERE / "dist"))


if __name__ == "__main__":
    main()
