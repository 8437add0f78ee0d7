# SPDX-License-Identifier: Apache-2.0
"""Diagrams are Mermaid in the pages; the picture of each is committed in docs/diagrams/.

A picture is named after its text, `put.3f2a91c0.svg`, so that one that is not its text's is not found. The
site shows the picture; render.py makes those that are missing.
"""

import hashlib
import pathlib
import re

PICTURES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "diagrams"
BLOCK = re.compile(r"^<!-- diagram: (?P<name>[a-z_]+) -->\n```mermaid\n(?P<text>.*?)^```$", flags=re.S | re.M)


def picture_of(name: str, text: str) -> pathlib.Path:
    return PICTURES / f"{name}.{hashlib.sha256(text.encode()).hexdigest()[:8]}.svg"


def with_pictures(markdown: str, page: str) -> str:
    """A page with the pictures of its diagrams, and their text below them, folded."""

    def picture(block: re.Match) -> str:
        path = picture_of(block["name"], block["text"])
        if not path.is_file():
            raise SystemExit(f"{page}: the diagram {block['name']} has no picture {path.name}: python3 tools/site/render.py")
        svg = re.sub(r"^<\?xml.*?\?>\s*", "", path.read_text(encoding="utf-8")).strip()
        return f'<div class="diagram" role="img" aria-label="{block["name"].replace("_", " ")}">{svg}</div>\n'

    if len(re.findall(r"^```mermaid$", markdown, flags=re.M)) != len(BLOCK.findall(markdown)):
        raise SystemExit(f"{page}: a block of Mermaid has no line <!-- diagram: name --> before it")
    return BLOCK.sub(picture, markdown)
