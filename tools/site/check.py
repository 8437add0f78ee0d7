# SPDX-License-Identifier: Apache-2.0
"""Looks at a built site: check.py FOLDER

Every link inside leads to a page and an anchor that are there, nothing is loaded from a network, and
links to elsewhere are well formed. They are not followed.
"""

import html.parser
import pathlib
import sys
import urllib.parse

# What a browser loads by itself.
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("image", "href"), ("use", "href")}


class Page(html.parser.HTMLParser):
    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.anchors: set[str] = set()
        self.links: list[tuple[bool, str]] = []  # (does a browser load it by itself, target)
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors.update(values[name] for name in ("id", "name") if values.get(name))
        for name in ("href", "src", "xlink:href"):
            if values.get(name):
                loaded = (tag, name.removeprefix("xlink:")) in LOADED
                loaded |= tag == "link" and values.get("rel") not in ("canonical", "prev", "next", "alternate")
                self.links.append((loaded, values[name]))


def what_is_wrong(link: str, loaded: bool, page: pathlib.Path, pages: dict) -> str | None:
    parts = urllib.parse.urlsplit(link)
    if parts.scheme or parts.netloc:
        if parts.scheme in ("data", "javascript", "mailto"):
            return None
        if loaded:
            return "is loaded from a network"
        return None if parts.scheme in ("http", "https") and parts.hostname else "is no address"
    target = (page.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target = target / "index.html"
    if not target.is_file():
        return "leads to no file"
    anchor = urllib.parse.unquote(parts.fragment)
    if anchor and target.suffix == ".html" and anchor not in pages[target].anchors:
        return "leads to no anchor"
    return None


def main() -> int:
    folder = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    wrong = [
        f"{path.relative_to(folder)}: {link}: {fault}"
        for path, page in sorted(pages.items())
        if path.name != "404.html"  # its links begin at the root of a server
        for loaded, link in page.links
        if (fault := what_is_wrong(link, loaded, path, pages))
    ]
    print("\n".join(wrong[:100]), file=sys.stderr, end="\n" if wrong else "")
    links = sum(len(page.links) for page in pages.values())
    print(f"site: {len(pages)} pages, {links} links, {len(wrong)} wrong")
    return 1 if wrong or len(pages) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
