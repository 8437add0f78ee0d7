# SPDX-License-Identifier: Apache-2.0
"""Draws the diagrams of docs/ that have no picture, and removes pictures whose text is gone.

    render.py [--mermaid FOLDER]

Needs chromium (a package of Debian's) and Mermaid. FOLDER has Mermaid's index.js as a module, as it lies in
the wheel of nicegui (nicegui/elements/mermaid/dist); without it that wheel is fetched from PyPI. Who only
reads or builds the site needs none of this: pictures are committed.
"""

import argparse
import html
import http.server
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import zipfile

import diagrams

DOCS = diagrams.PICTURES.parent
WHEEL = "nicegui==3.18.0"
INSIDE = "nicegui/elements/mermaid/dist/"

PAGE = """<!doctype html><meta charset="utf-8"><body><script type="module">
import { mermaid } from "./index.js";
const texts = TEXTS;
mermaid.initialize({ startOnLoad: false, theme: "neutral", htmlLabels: false, flowchart: { htmlLabels: false, wrappingWidth: 340 },
  fontFamily: "sans-serif", deterministicIds: true });
for (const [name, text] of Object.entries(texts)) {
  const out = document.createElement("pre");
  out.id = name;
  try { out.textContent = (await mermaid.render("d_" + name.replace(/\\W/g, "_"), text)).svg; }
  catch (error) { out.textContent = "error: " + error; }
  document.body.append(out);
}
document.body.dataset.done = "yes";
</script>"""


def fetch(folder: pathlib.Path) -> pathlib.Path:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), WHEEL]
    subprocess.run(command, check=True, stdout=sys.stderr)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith(INSIDE)])
    return folder / INSIDE


def drawn(texts: dict[str, str], mermaid: pathlib.Path) -> dict[str, str]:
    page = PAGE.replace("TEXTS", json.dumps(texts).replace("</", "<\\/"))

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(mermaid))

        def do_GET(self):
            if self.path != "/":
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            return self.wfile.write(page.encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom"]
        address = f"http://127.0.0.1:{server.server_port}/"
        dom = subprocess.run([*command, address], check=True, capture_output=True, text=True, timeout=120).stdout
        server.shutdown()
    found = {name: html.unescape(text) for name, text in re.findall(r'<pre id="([^"]+)">(.*?)</pre>', dom, flags=re.S)}
    for name in texts:
        if not found.get(name, "").startswith("<svg"):
            sys.exit(f"render: {name}: {found.get(name) or 'nothing was drawn'}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mermaid", type=pathlib.Path, metavar="FOLDER")
    given = parser.parse_args()
    wanted = {}
    for page in sorted(DOCS.rglob("*.md")):
        for block in diagrams.BLOCK.finditer(page.read_text(encoding="utf-8")):
            wanted[diagrams.picture_of(block["name"], block["text"])] = block["text"]
    diagrams.PICTURES.mkdir(exist_ok=True)
    for old in set(diagrams.PICTURES.glob("*.svg")) - set(wanted):
        old.unlink()
    missing = {path.name: text for path, text in wanted.items() if not path.is_file()}
    if missing:
        with tempfile.TemporaryDirectory() as folder:
            mermaid = given.mermaid or fetch(pathlib.Path(folder))
            for name, svg in drawn(missing, mermaid).items():
                (diagrams.PICTURES / name).write_text(svg.replace("\u00a0", "&#160;") + "\n", encoding="utf-8")
    print(f"render: {len(missing)} drawn, {len(wanted)} in all")


if __name__ == "__main__":
    main()
