# SPDX-License-Identifier: Apache-2.0
"""sbom_test.py FOLDER DOCUMENT: the bill of materials of what lies in FOLDER. It is valid SPDX 2.3, where spdx-tools is
there to say so, has each file with its checksum, and names what the binaries are linked with."""

import hashlib
import json
import os
import re
import sys

folder, path = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    document = json.load(file)
packages = {package["SPDXID"]: package for package in document["packages"]}
relations = {(one["spdxElementId"], one["relationshipType"], one["relatedSpdxElement"]) for one in document["relationships"]}


def of(binary, kind):
    return {packages[other]["name"] for one, what, other in relations if packages.get(one, {}).get("name") == binary and what == kind}


def check(is_right, words):
    if not is_right:
        raise SystemExit(f"FAILED: {words}")


def validate():
    try:
        from spdx_tools.spdx.parser.parse_anything import parse_file
        from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
    except ImportError:
        print("not tried: validation, spdx-tools is not here (scripts/python_env.sh --sbom)")
        return
    found = validate_full_spdx_document(parse_file(path))
    check(not found, "\n".join(message.validation_message for message in found))
    # The validator is one that finds something.
    wrong = {**document, "packages": [{**document["packages"][0], "licenseDeclared": "GPL and so"}, *document["packages"][1:]]}
    other = os.path.join(os.path.dirname(path), "wrong.spdx.json")
    try:
        with open(other, "w", encoding="utf-8") as file:
            json.dump(wrong, file)
        found = validate_full_spdx_document(parse_file(other))
    except Exception as error:  # the parser may refuse it first
        found = [error]
    finally:
        os.unlink(other)
    check(found, "the validator takes a licence that is none")
    print("valid SPDX 2.3")


def files_are_listed():
    listed = {package["name"]: package["checksums"][0]["checksumValue"] for package in packages.values() if "checksums" in package}
    for entry in os.scandir(folder):
        if entry.is_file() and entry.name != "SHA256SUMS" and not entry.name.endswith(".spdx.json"):
            with open(entry.path, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            check(listed.pop(entry.name, None) == digest, f"{entry.name} is not listed with its checksum")
    check(not listed, f"listed and not there: {sorted(listed)}")


def linked_libraries_are_named():
    (library,) = [name for name in (package["name"] for package in packages.values()) if re.fullmatch(r"libmemspan\.so[0-9.]+", name)]
    check({"libfmt-dev"} <= of(library, "STATIC_LINK"), f"in {library}: {of(library, 'STATIC_LINK')}")
    check("nlohmann-json3-dev" not in of(library, "STATIC_LINK"), f"{library} has what only the module for etcd is made of")
    check("libc6" in of(library, "DYNAMIC_LINK"), f"{library} loads {of(library, 'DYNAMIC_LINK')}")
    check(not any(name.startswith("libssl") for name in of(library, "DYNAMIC_LINK")), f"{library} loads OpenSSL by itself")
    check(any(name.startswith("libssl3") for name in of("libmemspan_tls.so", "DYNAMIC_LINK")), "the module for TLS does not load OpenSSL")
    check("libcli11-dev" in of("memspan-store", "STATIC_LINK"), "memspan-store has no CLI11")
    for name, package in packages.items():
        if name.startswith("SPDXRef-package-"):
            licence = package["licenseConcluded"]
            check(licence and licence != "NOASSERTION", f"{package['name']} has the licence \"{licence}\"")


validate()
files_are_listed()
linked_libraries_are_named()
print("passed: bill of materials")
