# SPDX-License-Identifier: Apache-2.0
"""Writes the software bill of materials of a release: SPDX 2.3, as JSON.

    sbom.py --build DIR... [--artefacts FOLDER] --out FILE

What is in a binary comes from how it was built, not from a list: the headers that the compiler read for its
objects say what is compiled in (Ninja's record), its dynamic section says what it loads, and dpkg says to which
package each of these belongs. Licences are those of docs/dependencies.md; a package that is not there is an
error, so that no dependency comes in unseen. The same build gives the same bytes.

--build DIR          a build tree, first the one whose binaries are described; others are where it took objects from
--artefacts FOLDER   files that were made of it, which are listed with their checksums
--out FILE           the document
"""

import argparse
import collections
import hashlib
import json
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# What every program of a Linux distribution stands on, and what the compiler adds; docs/dependencies.md names
# what memspan chose.
PLATFORM = {
    "libc6": "LGPL-2.1-or-later",
    "libc6-dev": "LGPL-2.1-or-later",
    "libgcc-s1": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libgcc-dev": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libstdc++6": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libstdc++-dev": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "linux-libc-dev": "GPL-2.0-only WITH Linux-syscall-note",
    "python3-dev": "PSF-2.0",
}
# Of whose headers only types and constants are used, or whose text becomes no code in the binary.
INTERFACES = {"libc6-dev", "linux-libc-dev", "python3-dev", "libpmix-dev", "libucx-dev", "libssl-dev", "libcurl4-openssl-dev"}
SPDX_NAMES = {"curl (MIT-like)": "curl"}

Package = collections.namedtuple("Package", "name version licence origin")


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def licences():
    """{package: licence} of the table in docs/dependencies.md."""
    found = {}
    with open(os.path.join(ROOT, "docs", "dependencies.md"), encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) != 5 or "PyPI" in cells[1]:
                continue
            names, kinds = re.split(r",\s*", cells[1]), cells[2].split(";")
            for i, name in enumerate(names):
                kind = kinds[min(i, len(kinds) - 1)].strip().split(",")[0]
                found.setdefault(name, SPDX_NAMES.get(kind, kind))
    return found


class Owners:
    """To which package a file of this machine belongs."""

    def __init__(self):
        self._licences = licences()
        self._of_folder = {}
        self._known = {}

    def of(self, path):
        """None for memspan's own files."""
        path = os.path.realpath(path)
        if path.startswith(ROOT + os.sep) and "/site-packages/" not in path:
            return None
        if path not in self._known:
            self._known[path] = self._find(path)
        return self._known[path]

    def _find(self, path):
        inside = re.search(r"/site-packages/(nanobind)/", path)
        if inside:
            folder = path[: inside.start()] + "/site-packages"
            (record,) = [name for name in os.listdir(folder) if name.startswith("nanobind-") and name.endswith(".dist-info")]
            name = "robin-map" if "/robin_map/" in path else "nanobind"
            version = record[len("nanobind-") : -len(".dist-info")]
            return Package(name, version, "MIT" if name == "robin-map" else "BSD-3-Clause", f"pkg:pypi/nanobind@{version}")
        if re.search(r"/python3\.[0-9]+/", path) and not path.startswith("/usr/include"):
            return Package("python3-dev", "", PLATFORM["python3-dev"], "")
        names = None
        for each in (path, path.removeprefix("/usr"), "/usr" + path):  # dpkg may know it by the old path
            done = subprocess.run(["dpkg", "-S", each], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                names = done.stdout.split("\n")[0].rsplit(": ", 1)[0].split(", ")
                break
        if names is None:
            raise SystemExit(f"sbom: {path} belongs to no package of this system")
        name = names[0].split(":")[0]
        version = run("dpkg-query", "-W", "-f=${Version}", names[0])
        source = re.sub(r"^(lib(?:gcc|stdc\+\+))-[0-9]+-dev$", r"\1-dev", name)
        source = re.sub(r"^libpython3\.[0-9]+-dev$", "python3-dev", source)
        return Package(source, version, self.licence(source), f"pkg:deb/debian/{name}@{version}")

    def licence(self, name):
        table = {**PLATFORM, **self._licences}
        # A library's licence is its -dev package's: libssl3 and libssl-dev, libucx0 and libucx-dev.
        bare = re.sub(r"-?[0-9.]+$", "", name)
        for known in (name, f"{bare}-dev", f"{bare}4-openssl-dev"):
            if known in table:
                return table[known]
        raise SystemExit(f"sbom: {name} is in what is shipped, and docs/dependencies.md does not have it")


class Tree:
    """A build tree: for each binary the files that its objects were made of."""

    def __init__(self, folders):
        self._folders = [os.path.realpath(folder) for folder in folders]
        self._read = {}
        for folder in self._folders:
            target = None
            for line in run("ninja", "-C", folder, "-t", "deps").splitlines():
                if line.startswith("    "):
                    self._read[target].append(os.path.normpath(os.path.join(folder, line.strip())))
                elif ": #deps" in line:
                    target = os.path.normpath(os.path.join(folder, line.split(": #deps")[0]))
                    self._read[target] = []

    def _linked(self, target):
        """The objects of a binary, those of its static archives, too; not what is only built before it."""
        lines = run("ninja", "-C", self._folders[0], "-t", "query", target).splitlines()
        for line in lines[: lines.index("  outputs:")]:
            name = line.strip().removeprefix("| ")
            if line.startswith("    || ") or not line.startswith("    "):
                continue
            if name.endswith(".a"):
                yield from self._linked(name)
            else:
                yield os.path.normpath(os.path.join(self._folders[0], name))

    def headers(self, binary):
        found = set()
        for name in self._linked(os.path.relpath(binary, self._folders[0])):
            found.update(self._read.get(name, ()))
        return found

    def binaries(self):
        """{name: path} of what is installed."""
        folder = self._folders[0]
        found = {}
        for place in ("lib", "bin", "python/memspan"):
            for name in sorted(os.listdir(os.path.join(folder, place)) if os.path.isdir(os.path.join(folder, place)) else ()):
                path = os.path.join(folder, place, name)
                if os.path.islink(path) or not os.path.isfile(path):
                    continue
                with open(path, "rb") as file:
                    if file.read(4) == b"\x7fELF":
                        found[name] = path
        return found


def needed(binary, own):
    """Paths of the libraries that a binary loads."""
    where = {}
    for line in run("ldconfig", "-p").splitlines():
        words = line.split()
        if len(words) > 3 and words[-2] == "=>":
            where.setdefault(words[0], words[-1])
    for line in run("readelf", "--wide", "-d", binary).splitlines():
        if "(NEEDED)" not in line:
            continue
        name = line.split("[")[1].rstrip("]")
        if name in where and not name.startswith(own):
            yield where[name]


def identifier(*words):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]+", "-", "-".join(words))


class Document:
    def __init__(self, version, commit, moment):
        self._packages, self._relations = {}, set()
        self._head = {
            "spdxVersion": "SPDX-2.3",
            "dataLicense": "CC0-1.0",
            "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"memspan-{version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/memspan-{version}-{commit}",
            "creationInfo": {
                "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment)),
                "creators": ["Organization: The memspan authors", "Tool: memspan-sbom"],
            },
        }

    def add(self, key, name, version, licence, origin="", sha256=""):
        package = {
            "SPDXID": key,
            "name": name,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "licenseConcluded": licence,
            "licenseDeclared": licence,
            "copyrightText": "NOASSERTION",
            "supplier": "Organization: The memspan authors" if not origin else "NOASSERTION",
        }
        if version:
            package["versionInfo"] = version
        if origin:
            reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": origin}
            package["externalRefs"] = [reference]
        if sha256:
            package["checksums"] = [{"algorithm": "SHA256", "checksumValue": sha256}]
        self._packages[key] = package

    def relate(self, one, kind, other):
        self._relations.add((one, kind, other))

    def text(self):
        relations = [
            {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
            for one, kind, other in sorted(self._relations)
        ]
        packages = [self._packages[key] for key in sorted(self._packages)]
        return json.dumps({**self._head, "packages": packages, "relationships": relations}, indent=1) + "\n"


def describe(tree, artefacts, version, commit, moment):
    owners, document = Owners(), Document(version, commit, moment)
    document.add(identifier("memspan"), "memspan", version, "Apache-2.0")
    document.relate("SPDXRef-DOCUMENT", "DESCRIBES", identifier("memspan"))

    def depend(key, kind, package):
        other = identifier("package", package.name)
        document.add(other, package.name, package.version, package.licence, package.origin)
        document.relate(key, kind, other)

    for name, path in tree.binaries().items():
        key = identifier("binary", name)
        document.add(key, name, version, "Apache-2.0")
        document.relate(identifier("memspan"), "CONTAINS", key)
        for package in sorted({owner for header in tree.headers(path) if (owner := owners.of(header))}):
            if package.name not in INTERFACES:
                depend(key, "STATIC_LINK", package)
        for package in sorted({owners.of(library) for library in needed(path, "libmemspan")}):
            depend(key, "DYNAMIC_LINK", package)
    for path in artefacts:
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        key = identifier("artefact", os.path.basename(path))
        document.add(key, os.path.basename(path), version, "Apache-2.0", sha256=digest)
        document.relate(key, "GENERATED_FROM", identifier("memspan"))
    return document.text()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", action="append", required=True)
    parser.add_argument("--artefacts")
    parser.add_argument("--out", required=True)
    given = parser.parse_args()
    with open(os.path.join(ROOT, "VERSION"), encoding="utf-8") as file:
        version = file.read().strip()
    done = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    commit = done.stdout.strip() if done.returncode == 0 else "unknown"
    moment = int(run("bash", os.path.join(ROOT, "packaging", "source_date.sh")))
    artefacts = []
    if given.artefacts:
        artefacts = [entry.path for entry in sorted(os.scandir(given.artefacts), key=lambda entry: entry.name)
                     if entry.is_file() and not entry.name.endswith(".spdx.json") and entry.name != "SHA256SUMS"]
    text = describe(Tree(given.build), artefacts, version, commit, moment)
    with open(given.out, "w", encoding="utf-8") as file:
        file.write(text)
    print(given.out)


if __name__ == "__main__":
    sys.exit(main())
