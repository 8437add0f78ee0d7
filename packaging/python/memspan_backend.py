# SPDX-License-Identifier: Apache-2.0
"""The build backend: scikit-build-core's, whose sdist has what git tracks and nothing else.

Its own takes whatever is not ignored, a stray file with a password, too. Without git (an unpacked
sdist) it is taken as it is. Also what scikit-build-core asks for dynamic metadata: README.md as a page
of its own, with links that work there, and the project's addresses. Both need the address of the
repository, $MEMSPAN_PROJECT_URL; without it links into the repository are plain text.
"""

import os
import re
import subprocess

from scikit_build_core import build as _scikit
from scikit_build_core.build import *  # noqa: F403  # the other hooks

_LINK = re.compile(r"(!?)\[([^\]]+)\]\((?!https?:|#)([^)\s]+)\)")


def build_sdist(sdist_directory, config_settings=None):
    settings = dict(config_settings or {})
    tracked = _tracked()
    if tracked:
        settings["sdist.exclude"] = ["*"]
        settings["sdist.include"] = [f"/{_pattern(path)}" for path in tracked]
    return _scikit.build_sdist(sdist_directory, settings)


def _tracked():
    def git(*words):
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else ""

    try:
        if os.path.realpath(git("rev-parse", "--show-toplevel").strip() or "/") != os.path.realpath("."):
            return []
        return [path for path in git("ls-files", "-z").split("\0") if os.path.lexists(path)]
    except FileNotFoundError:
        return []


def _pattern(path):
    return re.sub(r"([\\*?\[\]! #])", r"\\\1", path)


def dynamic_metadata(field, settings):
    url = os.environ.get("MEMSPAN_PROJECT_URL", "").rstrip("/")
    if field == "readme":
        with open("README.md", encoding="utf-8") as file:
            return {"content-type": "text/markdown", "text": page(file.read(), url)}
    if field == "urls":
        return {
            "Homepage": url,
            "Documentation": f"{url}/tree/main/docs",
            "Changelog": f"{url}/blob/main/CHANGELOG.md",
        } if url else {}
    raise ValueError(f'there is no field "{field}" here, allowed are readme and urls')


def page(text, url):
    """With absolute links, or with none into the repository when it has no address."""

    def link(found):
        picture, words, path = found.groups()
        return f"{picture}[{words}]({url}/{'raw' if picture else 'blob'}/main/{path})" if url else words

    return _LINK.sub(link, text)
