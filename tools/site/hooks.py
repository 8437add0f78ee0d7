# SPDX-License-Identifier: Apache-2.0
"""What the site has beside the pages of docs/ (scripts/site.sh): pages of other folders that are linked
to, the reference from the headers, the Python packages and the manual pages, remedies and diagrams.
"""

import fnmatch
import pathlib
import sys

from mkdocs.structure.files import File

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "dev")]

import diagrams  # noqa: E402
import headers  # noqa: E402
import manuals  # noqa: E402
import modules  # noqa: E402
import remedies  # noqa: E402
import repository  # noqa: E402

ROOT = repository.ROOT
_sources: dict[str, str] = {}  # page -> file of the source tree
_added: dict[str, str] = {}  # file of the source tree -> what its page has beyond it


def _header_name(path: pathlib.Path) -> str:
    inside = path.relative_to(ROOT / "include").as_posix()
    for folder in ("openshmem/", "cann/"):
        inside = inside.removeprefix(folder)
    return inside


def _reference_of_c() -> tuple[dict[str, str], str]:
    pages, rows, index = {}, [], []
    for path in sorted((ROOT / "include").rglob("*.h")):
        name = _header_name(path)
        page = f"reference/c/{path.relative_to(ROOT / 'include').as_posix().removesuffix('.h')}.md"
        text, names = headers.page(path, name)
        pages[page] = text
        here = page
        rows.append(f"| [`<{name}>`]({here}) | {headers.purpose(path).replace('|', chr(92) + '|')} |")
        index += [(n, here) for n in names if "/" not in n]
    inside = {page: page.removeprefix("reference/") for _, page in index}
    listed = "\n".join(
        f"| [`{name}`]({inside[page]}#{name}) | `{inside[page][2:-3]}.h` |" for name, page in sorted(set(index))
    )
    pages["reference/names.md"] = f"# Names of C and C++\n\n| name | header |\n|---|---|\n{listed}\n"
    return pages, (
        "\n## Headers\n\n[All names of C and C++](reference/names.md) in one table.\n\n"
        "| header | what it is |\n|---|---|\n" + "\n".join(rows) + "\n"
    )


def _page_each(entries, of, folder: str, heading: str, columns: str) -> tuple[dict[str, str], str]:
    """A page for each (name, path), by the module `of`, and a table of them."""
    pages, rows = {}, []
    for name, path in entries:
        pages[f"reference/{folder}/{name}.md"] = of.page(name, path)
        rows.append(f"| [`{name}`](reference/{folder}/{name}.md) | {of.purpose(path).replace('|', chr(92) + '|')} |")
    return pages, f"\n## {heading}\n\n| {columns} |\n|---|---|\n" + "\n".join(rows) + "\n"


def _reference_of_python() -> tuple[dict[str, str], str]:
    return _page_each(modules.modules(), modules, "python", "Python", "module | what it is")


def _reference_of_programs() -> tuple[dict[str, str], str]:
    return _page_each(manuals.manuals(), manuals, "programs", "Programs", "program | what it does")


def _pages_of_other_folders(files) -> dict[str, str]:
    """What pages link to outside of docs/, and what those link to, until nothing is new."""
    pages = {}
    waiting = [f"docs/{file.src_uri}" for file in files if file.src_uri.endswith(".md")]
    waiting += [path.name for path in ROOT.glob("*.md")]
    waiting += [f"examples/{path.parent.name}/README.md" for path in (ROOT / "examples").glob("*/README.md")]
    while waiting:
        path = waiting.pop()
        page = repository.page_of(path)
        if page in _sources:
            continue
        _sources[page] = path
        text = repository.page_text(path)
        if not path.startswith("docs/"):
            pages[page] = text
        if path.endswith(".md") or (ROOT / path).is_dir():
            waiting += repository.linked_files(path, text)
    return pages


def on_files(files, config):
    _sources.clear()
    pages = _pages_of_other_folders(files)
    _added.clear()
    for made, listed in (_reference_of_programs(), _reference_of_c(), _reference_of_python()):
        pages.update(made)
        _added["docs/reference.md"] = _added.get("docs/reference.md", "") + listed
    _added["docs/failures.md"] = "\n## Remedies\n" + remedies.page()
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    config.nav = _nav(config.nav, {file.src_uri for file in files if file.src_uri.endswith(".md")})
    return files


def _nav(entries, pages):
    """`x.md?` where the page exists; `folder/*` is all pages of a folder that are not named elsewhere."""
    out = []
    for entry in entries:
        title, value = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        if isinstance(value, list):
            out.append({title: _nav(value, pages)})
        elif value.endswith("*"):
            found = sorted(fnmatch.filter(pages, value))
            out.append({title: found})
        elif not value.endswith("?") or value[:-1] in pages:
            out.append({title: value.rstrip("?")} if title else value.rstrip("?"))
    return out


def on_page_markdown(markdown, page, config, files):
    uri = page.file.src_uri
    path = _sources.get(uri)
    if path is None:
        return markdown
    markdown = repository.with_links_of_site(path, uri, markdown)
    markdown += _added.get(path, "")
    return repository.with_bars_in_code(diagrams.with_pictures(markdown, uri))
