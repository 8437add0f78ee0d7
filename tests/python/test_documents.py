# SPDX-License-Identifier: Apache-2.0
"""The programs that the documents show, in C and in Python, run as they are printed.

Every block of a program has a line before it that says how it is run:

    <!-- run: processes=2 rank certificates -->

processes=N: started N times at once; oshrun=N, torchrun=N: by that launcher. rank: each is given its number.
certificates: me.pem, me.key and ca/ca.pem are in the folder. installed: needs the package's entry points.
compile=device: device code of CANN SHMEM, which is only compiled. A block of text right after it is what all of
them print, in any order. Only ports are others than the printed ones, since other programs of this machine may
have those. tests/site/test_blocks.py says which blocks are run elsewhere, or not.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
from importlib.metadata import entry_points

from jobs import hosts
import jobs
import memspan
import pytest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
FENCE = re.compile(
    r"^(?:<!-- (?:(?P<elsewhere>run by|not run)|run): (?P<how>[^\n]*) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$"
    r"(?:\n\n```text\n(?P<output>.*?)^```$)?",
    flags=re.S | re.M,
)
LANGUAGES = {"c": "c", "python": "py", "py": "py", "cpp": "cc"}


def blocks():
    for page in sorted(DOCS.rglob("*.md")):
        found = FENCE.finditer(page.read_text(encoding="utf-8"))
        programs = [block for block in found if block["language"] in LANGUAGES and not block["elsewhere"]]
        for number, block in enumerate(programs):
            yield pytest.param(block, id=f"{page.relative_to(DOCS)}-{number}")


def compiled(source):
    compiler = shutil.which("cc" if source.suffix == ".c" else "c++")
    if compiler is None:
        pytest.skip(f"does not apply: no compiler for {source.name}")
    program = source.with_suffix("")
    library = memspan.get_lib_path()
    subprocess.run(
        [compiler, "-Wall", "-Wextra", "-Werror", "-o", program, source, "-I", memspan.get_include_path()]
        + ["-L", library, "-lmemspan", f"-Wl,-rpath,{library}"],
        check=True,
        timeout=jobs.LIMIT_S,
    )
    return [str(program)]


def compile_device_code(source):
    folders = ["-I", os.path.join(memspan.get_include_path(), "aclshmem")]
    options = ["-std=c++17", "-DMEMSPAN_DEVICE_CODE", "-c", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["c++", *options, *folders, "-o", source.with_suffix(".o"), source], check=True, timeout=jobs.LIMIT_S)


def make_certificates(folder):
    """An authority's and a member's, as the page about the store says they have to be."""

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True, timeout=60)

    (folder / "ca").mkdir()
    key = ["-newkey", "rsa:3072", "-nodes"]
    use = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign"]
    openssl("req", "-x509", *key, "-subj", "/CN=authority", "-days", "90", *use, "-keyout", "ca.key", "-out", "ca/ca.pem")
    openssl("req", *key, "-subj", "/CN=member", "-keyout", "me.key", "-out", "me.csr")
    (folder / "use").write_text(
        "subjectAltName=IP:127.0.0.1\nkeyUsage=digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\n"
    )
    issuer = ["-CA", "ca/ca.pem", "-CAkey", "ca.key", "-CAcreateserial"]
    openssl("x509", "-req", "-in", "me.csr", *issuer, "-days", "90", "-extfile", "use", "-out", "me.pem")
    (folder / "me.key").chmod(0o600)


def launcher_of(how):
    if "oshrun" in how:
        return [os.environ["MEMSPAN_OSHRUN"], *hosts.launcher_options(int(how["oshrun"])), "-n", how["oshrun"]]
    if "torchrun" not in how:
        return []
    pytest.importorskip("torch", reason="needs=torch")
    place = ["--master-addr", "127.0.0.1", "--master-port", str(jobs.free_port())]
    processes = ["--nproc-per-node", how["torchrun"], "--no-python"]  # else it runs them unbuffered
    return [sys.executable, "-m", "torch.distributed.run", *place, *processes]


@pytest.mark.parametrize("block", list(blocks()))
def test_a_program(block, tmp_path):
    assert block["how"], "a program without a line <!-- run: ... --> before it is run by nobody"
    how = dict(word.partition("=")[::2] for word in block["how"].split())
    if "installed" in how and not entry_points(group="torch.backends", name="memspan"):
        pytest.skip("does not apply: memspan is imported from its build: only an installed package has entry points")
    source = tmp_path / f"program.{LANGUAGES[block['language']]}"
    source.write_text(re.sub(r"127\.0\.0\.1:8\d{3}", f"127.0.0.1:{jobs.free_port()}", block["text"]))
    if how.get("compile") == "device":
        compile_device_code(source)
        return
    if "certificates" in how:
        make_certificates(tmp_path)
    program = [sys.executable, str(source)] if source.suffix == ".py" else compiled(source)
    command = launcher_of(how) + program
    # Unbuffered, a line would leave in pieces, and those of others come between.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    environment["OMP_NUM_THREADS"] = "1"
    count = int(how.get("processes", 1))
    processes = [
        subprocess.Popen(
            command + [str(rank)] * ("rank" in how),
            cwd=tmp_path,
            env={**environment, **hosts.environment(rank, count)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    try:
        ends = [process.communicate(timeout=jobs.LIMIT_S) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * len(processes), ends
    printed = sorted(line for out, _ in ends for line in out.splitlines() if line)
    assert printed == sorted((block["output"] or "").splitlines()), ends


def test_no_placeholder_is_left():
    root = DOCS.parent
    pages = [*root.glob("*.md"), *DOCS.rglob("*.md"), *(root / "examples").rglob("*.md")]
    left = [f"{page.name}: {mark}" for page in pages for mark in re.findall("@@[A-Z_]+@@", page.read_text())]
    assert len(pages) > 20 and not left
