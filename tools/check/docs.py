#!/usr/bin/env python3
"""Checks that the documents keep up: a page per room, named in the tour; links that lead somewhere; paths in backticks that exist.

--self-test shows that each rule can fail.
"""
import pathlib
import re
import sys
import tempfile

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.S | re.M)
# `src/kir/builder.h`, `scripts/test --quick`: a path from the root, with a folder that the project has
PATH = re.compile(r"`((?:src|include|tests|tools|scripts|docs|cmake|bench)/[\w./-]+)(?: [^`]*)?`")


def check_links(root, page, text):
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            continue
        if not (page.parent / target.split("#")[0]).exists():
            yield f"{page.relative_to(root)}: the link to {target} leads nowhere"
    for path in PATH.findall(text):
        if not (root / path).exists():
            yield f"{page.relative_to(root)}: there is no {path}"


def check_tree(root):
    faults = []
    tour = root / "docs/architecture.md"
    named = tour.read_text() if tour.exists() else ""
    rooms = sorted(p.parent.name for p in (root / "src").glob("*/CMakeLists.txt"))
    places = {page.stem: page.relative_to(root / "docs") for page in sorted((root / "docs/rooms").rglob("*.md"))}
    for room in rooms:
        if room not in places:
            faults.append(f"src/{room} has no page docs/rooms/<group>/{room}.md")
        elif str(places[room]) not in named:
            faults.append(f"docs/architecture.md does not link {places[room]}")
    for room in sorted(set(places) - set(rooms) - {"tools"}):
        faults.append(f"docs/{places[room]} describes no room")
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "bench").rglob("*.md"), *(root / "tests").glob("*.md")]
    for page in sorted(pages):
        faults += check_links(root, page, FENCE.sub("", page.read_text()))
    return faults, len(pages)


def self_test():
    good = {"src/kir/CMakeLists.txt": "", "docs/rooms/kernels/kir.md": "back to [the tour](../../architecture.md), `src/kir/CMakeLists.txt`",
            "docs/architecture.md": "[kir](rooms/kernels/kir.md) [site](https://example.org) [here](#x)", "README.md": "```\n[no](link)\n```\n"}
    bad = [("src/ops/CMakeLists.txt", ""), ("docs/rooms/run/ghost.md", ""), ("README.md", "[x](docs/none.md)"), ("README.md", "`src/none.cpp`"),
           ("docs/architecture.md", "no rooms")]
    for name, text in [(None, "")] + bad:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, content in {**good, **({name: text} if name else {})}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(content)
            faults, _ = check_tree(root)
            if bool(faults) != bool(name):
                raise SystemExit(f"docs: self-test: {name} {text!r} gave {faults}")
    print(f"docs: self-test: {len(bad)} faults found, the good tree passes")


def main():
    if "--self-test" in sys.argv:
        self_test()
        return
    faults, pages = check_tree(pathlib.Path(__file__).resolve().parents[2])
    print("\n".join(faults) if faults else f"docs: {pages} pages lead somewhere")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
