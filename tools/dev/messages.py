#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every message of memspan with its cause and its cure.

    messages.py                    checks: every message has a cure, and every pattern a message
    messages.py --explain TEXT     what a message means and what to do (a part of it is enough)
    messages.py --list             all messages, one a line: file, kind, code, text

Cures stand in docs/messages/*.toml. A cure is for all messages with one cause and one thing to do, however
many they are:

    [[cure]]
    title = "..."                  a short name
    when = ["regular expression"]  found in the message's text; what the program puts in is `…`
    in = ["src/store/"]            beginnings of paths; any when it is left out
    code = ["TIMEOUT"]             codes; any when it is left out
    means = "..."                  the cause
    do = "..."                     what to do

The first cure that fits counts, in the order of the files' names and of the cures in them. not_errors.toml
says which texts are no messages of a failure, and why.
"""

import argparse
import dataclasses
import html
import pathlib
import re
import sys
import tomllib

import message_sources
from message_sources import GAP, ROOT, Message

CURES = ROOT / "docs" / "messages"


@dataclasses.dataclass
class Cure:
    area: str
    title: str
    when: list[re.Pattern]
    means: str
    do: str
    paths: tuple[str, ...]
    codes: tuple[str, ...]
    messages: list[Message] = dataclasses.field(default_factory=list)
    used: set[int] = dataclasses.field(default_factory=set)

    def fits(self, message: Message) -> bool:
        if self.paths and not message.path.startswith(self.paths):
            return False
        if self.codes and message.code not in self.codes:
            return False
        found = [i for i, pattern in enumerate(self.when) if pattern.search(message.text)]
        self.used.update(found)
        return bool(found)


def _cure(area: str, entry: dict) -> Cure:
    unknown = set(entry) - {"title", "when", "in", "code", "means", "do"}
    if unknown:
        raise SystemExit(f"{area}: {entry.get('title')}: there is no {', '.join(sorted(unknown))}")
    patterns = [re.compile(pattern) for pattern in entry["when"]]
    places = tuple(entry.get("in", ()))
    return Cure(area, entry["title"], patterns, entry["means"], entry["do"], places, tuple(entry.get("code", ())))


def cures() -> list[Cure]:
    out = []
    for path in sorted(CURES.glob("[0-9]*.toml")):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        out += [_cure(content["area"], entry) for entry in content["cure"]]
    return out


def not_errors() -> list[Cure]:
    content = tomllib.loads((CURES / "not_errors.toml").read_text(encoding="utf-8"))
    return [
        Cure("", e["why"], [re.compile(p) for p in e["when"]], "", "", tuple(e["in"]), tuple(e.get("code", ())))
        for e in content["text"]
    ]


def assigned() -> tuple[list[Cure], list[Message], list[Cure]]:
    """The cures with their messages, the messages that have none, and what is no error."""
    known, others, missing = cures(), not_errors(), []
    for message in message_sources.messages():
        if message.kind in ("doing", "system"):
            continue
        other = next((o for o in others if o.fits(message)), None)
        if other is not None:
            other.messages.append(message)
            continue
        cure = next((cure for cure in known if cure.fits(message)), None)
        (missing if cure is None else cure.messages).append(message)
    return known, missing, others


def problems() -> list[str]:
    known, missing, others = assigned()
    out = [f"{m.path}:{m.line}: no cure for: [{m.code}] {m.text}" for m in missing]
    for cure in known:
        if not cure.messages:
            out.append(f"{cure.area}: {cure.title}: no message is left for it")
        if len(cure.do.split()) < 4 or len(cure.means.split()) < 4:
            out.append(f"{cure.area}: {cure.title}: says too little")
    for cure in [*known, *others]:
        for i, pattern in enumerate(cure.when):
            if i not in cure.used:
                out.append(f"{cure.area or 'not_errors'}: {cure.title}: nothing is found by {pattern.pattern!r}")
    return out


def _shown(text: str) -> str:
    return html.escape(text if len(text) <= 300 else text[:299] + GAP, quote=False)


def page() -> str:
    """The list for the site, as Markdown."""
    known, _, _ = assigned()
    every = message_sources.messages()
    out = []
    for area in dict.fromkeys(cure.area for cure in known):
        out.append(f"\n## {area}\n")
        for cure in (c for c in known if c.area == area):
            out.append(f"\n### {cure.title}\n\n{cure.means}\n\n**Do:** {cure.do}\n")
            shown = dict.fromkeys((m.text, m.code) for m in cure.messages)
            rows = "".join(f"<li><code>{_shown(text)}</code>{f' <small>{code}</small>' if code else ''}</li>\n" for text, code in shown)
            out.append(f'<details><summary>{len(shown)} message{"s" * (len(shown) != 1)}</summary>\n<ul>\n{rows}</ul></details>\n')
    for kind, title in (("system", "What was asked of the system"), ("doing", "What was being done")):
        texts = sorted({m.text for m in every if m.kind == kind}, key=str.lower)
        rows = "".join(f"<li><code>{_shown(text)}</code></li>\n" for text in texts)
        out.append(f'\n## {title}\n\n<details><summary>{len(texts)} texts</summary>\n<ul>\n{rows}</ul></details>\n')
    return "\n".join(out)


def _likeness(message: Message, text: str) -> int:
    """How many characters of the message stand in the text, in their order; 0 when it does not fit."""
    pieces = [piece.strip() for piece in message.text.split(GAP) if len(piece.strip()) > 1]
    if not pieces:
        return 0
    if re.search(".*?".join(re.escape(piece) for piece in pieces), text, flags=re.S):
        return sum(map(len, pieces))
    return len(text) if len(text) > 7 and text in message.text else 0


def explain(text: str) -> int:
    known, _, _ = assigned()
    found = [(max((_likeness(m, text) for m in cure.messages), default=0), i) for i, cure in enumerate(known)]
    best = sorted((likeness, -i) for likeness, i in found if likeness > 5)[-2:][::-1]
    for _, i in best:
        print(f"{known[-i].title}\n  {known[-i].means}\n  Do: {known[-i].do}\n")
    errno = re.search(r"\(errno (\d+)\)", text)
    if errno:
        print(f"A call of the system failed with errno {errno[1]}: docs/messages/README.md, \"Calls of the system\"")
    if not best and not errno:
        print("messages: nothing like that is a message of this version", file=sys.stderr)
        return 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--explain", metavar="TEXT")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    if given.explain is not None:
        return explain(given.explain)
    if given.list:
        for m in message_sources.messages():
            print(f"{m.path}:{m.line}\t{m.kind}\t{m.code}\t{m.text}")
        return 0
    wrong = problems()
    print("\n".join(wrong), end="\n" if wrong else "")
    known, _, others = assigned()
    count = sum(len(cure.messages) for cure in known)
    print(f"messages: {count} messages, {len(known)} cures; {sum(len(o.messages) for o in others)} texts are none; {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
