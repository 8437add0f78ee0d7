# SPDX-License-Identifier: Apache-2.0
"""Does what a Dockerfile says, without a container runtime: each stage is a folder made from an empty system, in which
the instructions are done in their order. Knows the instructions of the Dockerfiles here, and refuses others.

    dockerfile.py --file DOCKERFILE --context FOLDER --work FOLDER

Prints what the image's command prints, and ends as it does. Needs root.
"""

import argparse
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys

SYSTEMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "empty_system.sh")


def instructions(path):
    """[(instruction, the rest)], with continued lines joined and comments left out."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"(?m)^\s*#.*\n", "", file.read())
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [tuple(line.split(None, 1)) for line in lines if line.strip()]


class Context:
    """The files that are sent to the builder: what git tracks, without what .dockerignore names."""

    def __init__(self, folder):
        self.folder = folder
        listed = subprocess.run(["git", "-C", folder, "ls-files", "-z"], capture_output=True, text=True, check=True)
        with open(os.path.join(folder, ".dockerignore"), encoding="utf-8") as file:
            self.ignored = [line.strip() for line in file if line.strip()]
        self.names = [name for name in listed.stdout.split("\0")
                      if name and os.path.lexists(os.path.join(folder, name)) and not self.ignores(name)]

    def ignores(self, name):
        """A pattern is for the first folder of a path, and for each with **/ before it."""
        parts = name.split("/")
        return any(fnmatch.fnmatch(part, pattern.removeprefix("**/"))
                   for pattern in self.ignored for part in (parts if pattern.startswith("**/") else parts[:1]))

    def copy(self, source, target):
        source = os.path.normpath(source)
        found = [name for name in self.names if source == "." or name == source or name.startswith(source + "/")]
        if not found:
            raise SystemExit(f"dockerfile: COPY {source}: the context has no such file")
        for name in found:
            inside = os.path.basename(name) if name == source else os.path.relpath(name, source)
            place = os.path.join(target, inside)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            shutil.copy2(os.path.join(self.folder, name), place, follow_symlinks=False)


class Stage:
    def __init__(self, folder):
        self.folder, self.environment, self.place, self.user, self.command = folder, {}, "/", None, None
        script = 'set -e; work=$1; source "$2"; make_root "$3"'
        subprocess.run(["bash", "-c", script, "sh", os.path.dirname(folder), SYSTEMS, folder], check=True)

    def inside(self, path):
        return os.path.join(self.folder, os.path.join(self.place, path).lstrip("/"))

    def run(self, words, **options):
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        user = [] if self.user is None else ["setpriv", f"--reuid={self.user[0]}", f"--regid={self.user[1]}", "--clear-groups"]
        script = 'work=/nowhere; source "$1"; shift; in_root "$@"'
        return subprocess.run(["bash", "-c", script, "sh", SYSTEMS, self.folder, "env", *settings, "sh", "-c",
                               'cd "$1" && shift && exec "$@"', "sh", self.place, *user, *words], check=False, **options)


def build(path, context, work):
    """The last stage."""
    stages, stage = {}, None
    for instruction, rest in instructions(path):
        print(f"dockerfile: {instruction} {rest}", file=sys.stderr, flush=True)
        if instruction == "FROM":
            name = rest.split(" AS ")[1] if " AS " in rest else str(len(stages))
            stage = stages[name] = Stage(os.path.join(work, f"stage-{name}"))
        elif instruction == "WORKDIR":
            stage.place = os.path.join(stage.place, rest)
            os.makedirs(stage.inside("."), exist_ok=True)
        elif instruction == "COPY" and rest.startswith("--from="):
            option, source, target = rest.split()
            shutil.copytree(stages[option.removeprefix("--from=")].inside(source), stage.inside(target), symlinks=True)
        elif instruction == "COPY":
            source, target = rest.split()
            context.copy(source, stage.inside(target))
        elif instruction == "ENV":
            name, value = rest.split("=", 1)
            stage.environment[name] = value
        elif instruction == "USER":
            stage.user = rest.split(":")
        elif instruction == "CMD":
            stage.command = json.loads(rest)
        elif instruction == "RUN":
            done = stage.run(["sh", "-c", rest], stdout=sys.stderr)
            if done.returncode != 0:
                raise SystemExit(f"dockerfile: RUN {rest} gave {done.returncode}")
        else:
            raise SystemExit(f"dockerfile: {instruction} is none of the instructions that this knows")
    return stage


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("file", "context", "work"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    stage = build(given.file, Context(given.context), os.path.abspath(given.work))
    return stage.run(stage.command).returncode


if __name__ == "__main__":
    sys.exit(main())
