# SPDX-License-Identifier: Apache-2.0
"""What PyPI would show, and what an sdist has in it."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TOOLS = os.path.join(ROOT, "build", "python-env", "bin", "python")
HAS_TOOLS = pytest.mark.skipif(not os.path.exists(TOOLS), reason="does not apply: scripts/build_wheel.sh has not run")


def installed():
    """Of the wheel; a build folder on PYTHONPATH has none."""
    try:
        return importlib.metadata.metadata("memspan")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("does not apply: memspan is not installed as a wheel")


def test_metadata():
    metadata = installed()
    assert metadata["Author"] == "The memspan authors"
    assert "Operating System :: POSIX :: Linux" in metadata.get_all("Classifier")
    assert "numpy" in metadata.get_all("Provides-Extra")
    assert not re.search(r"\]\((?!https?:)", metadata.get_payload() or metadata["Description"])


@HAS_TOOLS
def test_links_of_the_page():
    look = "from memspan_backend import dynamic_metadata as d; print(d('readme', {})['text'], d('urls', {}))"
    places = os.path.join(ROOT, "packaging", "python")
    page, bare = (
        subprocess.run(
            [TOOLS, "-c", look],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": places, "MEMSPAN_PROJECT_URL": url},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for url in ("https://project.example/memspan/", "")
    )
    assert "[Python](https://project.example/memspan/blob/main/docs/python.md)" in page
    assert "](https://project.example/memspan/raw/main/docs/pictures/compare.svg)" in page
    assert "'Homepage': 'https://project.example/memspan'" in page
    for text in (page, bare):
        assert not re.search(r"\]\((?!https?:)", text)


@HAS_TOOLS
@pytest.mark.skipif(not shutil.which("git"), reason="needs=git")
def test_an_sdist_has_tracked_files_only(tmp_path):
    tree = tmp_path / "tree"
    cached = shutil.ignore_patterns("__pycache__")
    shutil.copytree(os.path.join(ROOT, "packaging"), tree / "packaging", ignore=cached)
    for name in ("pyproject.toml", "README.md", "LICENSE", "VERSION", ".gitignore"):
        shutil.copy(os.path.join(ROOT, name), tree)
    (tree / "odd [name]!.txt").write_text("tracked")
    git = ["git", "-C", str(tree), "-c", "user.name=x", "-c", "user.email=x@y"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    tracked = subprocess.run([*git, "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
    (tree / "password.txt").write_text("of a user")
    program = "import sys; from memspan_backend import build_sdist; build_sdist(sys.argv[1])"
    subprocess.run(
        [TOOLS, "-c", program, str(tmp_path)],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "packaging" / "python"), "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
        stdout=sys.stderr,
    )
    (sdist,) = tmp_path.glob("memspan-*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    assert names - {"PKG-INFO"} == set(tracked.split("\0")) - {""}
