#!/usr/bin/env python3
"""Checks the include lines of src/, include/tern/ and tools/tern/ against cmake/arrows.txt.

Also: public headers name standard headers only, headers stay light, LLVM is seen by src/emit/llvm alone, and `#if` asks for the
platform in base/platform and backends only. --self-test shows that each rule can fail.
"""
import pathlib
import re
import sys
import tempfile

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<([^>]+)>)', re.M)
CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b(.*)$", re.M)
HEAVY = ("regex", "iostream", "nlohmann/", "CLI/")
SOURCES = (".h", ".cpp", ".inc")
TOOL_FOLDERS = ("common", "device", "model", "run", "truth")  # below tools/tern


class Arrows:
    def __init__(self, path):
        self.direct, self.header_room = {}, {}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            line = line.split("#")[0].strip()
            if header := re.fullmatch(r"tern/(\S+) in (\w+)", line):
                self.header_room[header[1]] = header[2]
            elif room := re.fullmatch(r"(\w+):((?: \w+)*)", line):
                self.direct[room[1]] = room[2].split()
            elif line:
                raise SystemExit(f"{path}:{number}: neither 'room: rooms' nor 'tern/x.h in room': {line}")
        self.reach = {room: self._closure(room, path) for room in self.direct}

    def owner(self, header):
        """The room of a public header: its own line, or that of its folder."""
        return self.header_room.get(header) or self.header_room.get(header.rpartition("/")[0] + "/")

    def _closure(self, room, path):
        seen, todo = {room}, list(self.direct[room])
        while todo:
            other = todo.pop()
            if other == room:
                raise SystemExit(f"{path}: the arrows of '{room}' lead back to it")
            if other not in self.direct and other != "public":
                raise SystemExit(f"{path}: '{room}' may include '{other}', which has no line")
            if other not in seen:
                seen.add(other)
                todo += self.direct.get(other, [])
        return seen


def room_of(relative, arrows):
    parts = relative.parts
    if parts[0] == "include":
        return arrows.owner("/".join(parts[2:]))
    return parts[1] if parts[0] == "src" else "tools"


def check_quoted(target, room, arrows):
    top, _, rest = target.partition("/")
    reach = arrows.reach[room]
    if top == "tern":
        owner = arrows.owner(rest)
        if owner is None:
            return f"tern/{rest} belongs to no room: add it to cmake/arrows.txt"
        if owner not in reach and "public" not in reach:
            return f"{room} may not include {owner} (tern/{rest})"
        return None
    if top == "llvm" and "/" in target:
        return None  # LLVM's own; check_foreign says who may
    if not rest:
        return None if room == "tools" else f'"{target}" is not relative to src/ or include/'
    if room == "tools" and top in TOOL_FOLDERS:
        return None  # the program's own folders
    if top not in arrows.direct:
        return f"'{top}' is no room"
    return None if top in reach else f"{room} may not include {top}"


def check_foreign(target, relative):
    where = relative.as_posix()
    if target.startswith(("llvm/", "llvm-c/")) and not where.startswith("src/emit/llvm/"):
        return f"only src/emit/llvm may include {target}"
    foreign = "/" in target and not target.startswith("tern/")
    if where.startswith("include/") and (foreign or ("/" not in target and target.endswith(".h") and target not in ("stddef.h", "stdint.h"))):
        return f"a public header includes <{target}>; it may name standard headers only"
    if relative.suffix == ".h" and target.startswith(HEAVY) and not target.endswith("_fwd.hpp"):
        return f"<{target}> in a header is compiled everywhere; include it in a .cpp"
    return None


def check_file(root, path, arrows):
    relative = path.relative_to(root)
    room = room_of(relative, arrows)
    text = path.read_text()
    if room is None:
        return [f"{relative}: belongs to no room: add it to cmake/arrows.txt"]
    if room not in arrows.direct:
        return [f"{relative}: '{room}' has no line in cmake/arrows.txt"]
    faults = []
    for match in INCLUDE.finditer(text):
        quoted, angled = match.groups()
        why = check_foreign(quoted or angled, relative) or (quoted and check_quoted(quoted, room, arrows))
        if why:
            faults.append(f"{relative}:{text.count(chr(10), 0, match.start()) + 1}: {why}")
    where = relative.as_posix()
    if not where.startswith(("src/base/platform/", "src/backends/")) and relative.suffix != ".inc":
        for match in CONDITION.finditer(text):
            if "__cplusplus" not in match[1]:
                faults.append(f"{relative}:{text.count(chr(10), 0, match.start()) + 1}: a condition of the preprocessor outside"
                              " of base/platform and backends: choose files, not lines")
    return faults


def check_tree(root):
    arrows = Arrows(root / "cmake/arrows.txt")
    faults, files = [], 0
    for folder in ("src", "include", "tools/tern"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                files += 1
                faults += check_file(root, path, arrows)
    return faults, files


def self_test():
    good = {"cmake/arrows.txt": "base:\ncore: base\nllm: public\ntern/a.h in base\ntern/b.h in core\ntern/ops/ in core\n",
            "include/tern/ops/o.h": '#include "tern/b.h"\n',
            "include/tern/a.h": "#include <vector>\n", "include/tern/b.h": '#include "tern/a.h"\n', "src/base/x.cpp": '#include "base/y.h"\n',
            "src/core/x.cpp": '#include "base/y.h"\n#include "tern/a.h"\n', "src/llm/x.cpp": '#include "tern/b.h"\n',
            "src/base/platform/p.cpp": "#if defined(__linux__)\n#endif\n"}
    bad = {"src/base/bad.cpp": ['#include "core/x.h"\n', '#include "tern/b.h"\n', '#include "nowhere/x.h"\n', '#include "local.h"\n',
                                "#include <llvm/IR/IR.h>\n", "#ifdef X\n#endif\n", '#include "tern/unlisted.h"\n'],
           "src/base/bad.h": ["#include <regex>\n", "#include <nlohmann/json.hpp>\n"],
           "src/llm/bad.cpp": ['#include "core/x.h"\n'], "src/stray/bad.cpp": ["\n"],
           "include/tern/a.h": ["#include <fmt/core.h>\n", '#include "tern/b.h"\n'], "include/tern/stray.h": ["\n"]}
    cases = [(name, text) for name, texts in bad.items() for text in texts]
    for name, text in [(None, "")] + cases:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, content in {**good, **({name: text} if name else {})}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(content)
            faults, _ = check_tree(root)
            if bool(faults) != bool(name):
                raise SystemExit(f"layers: self-test: {name} {text!r} gave {faults}")
    print(f"layers: self-test: {len(cases)} faults found, the good tree passes")


def main():
    if "--self-test" in sys.argv:
        self_test()
        return
    faults, files = check_tree(pathlib.Path(__file__).resolve().parents[2])
    print("\n".join(faults) if faults else f"layers: {files} files follow the arrows")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
