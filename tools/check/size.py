#!/usr/bin/env python3
"""Checks the sizes that keep rooms readable: 800 lines a file, 80 lines a function, 12 source files a folder.

Looks at the C++ and Python sources. Data, corpora and goldens do not count. --self-test shows that each rule can fail.
"""
import ast
import collections
import pathlib
import re
import sys

FILE_LINES, FUNCTION_LINES, FOLDER_FILES = 800, 80, 12
TOPS = ("src", "include", "tools", "tests", "bench", "scripts", "python")
CPP = (".h", ".cpp", ".inc", ".c")
DATA = re.compile(r"^tests/(data|golden|corpus)/|/corpus/")
# Comments, raw strings, strings, characters: blanked before braces are counted, line ends kept.
TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def strip(text):
    text = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "_", text)
    text = TOKENS.sub(blank, text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)


def is_function(header):
    """Whether what stands before a brace at namespace or class scope is the head of a function."""
    if "(" not in header or (SCOPE.search(header) and not re.search(r"\)\s*(?:const|noexcept|override|final|->|:|\s)*$", header)):
        return False
    before = header.split("(")[0]
    return not re.search(r"(?<![=!<>])=(?!=)", before) or "operator" in before


def is_initialiser(header):
    """Whether a brace at namespace or class scope belongs to the head: a default argument, or a member of a constructor's list."""
    return header.count("(") != header.count(")") or bool(re.search(r"\)[\s\w]*:[^:].*[\w>]\s*$", header, re.S))


def cpp_functions(text):
    """(first line, lines, head) of each function that is not inside another function."""
    text, found, scopes, start = strip(text), [], [], 0
    for match in re.finditer(r"[{};]", text):
        at, c = match.start(), match.group()
        inside = bool({"function", "other", "head"} & set(scopes))
        if c == "{":
            head = text[start:at]
            kind = "other" if inside else "head" if is_initialiser(head) else "function" if is_function(head) else "scope" if SCOPE.search(head) else "other"
            scopes.append(kind)
            if kind == "function":
                name, lead = head, len(head) - len(head.lstrip())
                first = text.count("\n", 0, start + lead) + 1
        closed = scopes.pop() if c == "}" and scopes else None
        if closed == "function":
            found.append((first, text.count("\n", 0, at) + 2 - first, " ".join(name.split())[:60]))
        if closed != "head" and not {"function", "head"} & set(scopes):
            start = at + 1
    return found


def python_functions(text):
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [(n.lineno, n.end_lineno - n.lineno + 1, n.name) for n in ast.walk(ast.parse(text)) if isinstance(n, kinds)]


def check(files):
    """files: {path: text}. Returns the faults."""
    faults, folders = [], collections.Counter()
    for path, text in files.items():
        folders[str(pathlib.PurePosixPath(path).parent)] += 1
        lines = text.count("\n")
        if lines > FILE_LINES:
            faults.append(f"{path}: {lines} lines, {FILE_LINES} is the limit; split it by meaning")
        functions = python_functions(text) if path.endswith(".py") else [] if path.endswith(".inc") else cpp_functions(text)
        for first, length, head in functions:
            if length > FUNCTION_LINES:
                faults.append(f"{path}:{first}: a function of {length} lines, {FUNCTION_LINES} is the limit: {head}")
    for folder, count in sorted(folders.items()):
        if count > FOLDER_FILES:
            faults.append(f"{folder}/: {count} source files, {FOLDER_FILES} is the limit; make folders by meaning")
    return faults


def self_test():
    def body(n):
        return "".join(f"  call({i}, '{{', \"}}\");\n" for i in range(n))

    long = "namespace a {\nstruct B : C {\n  int f(int x = {}) const override {\n" + body(90) + "  }\n};\n}\n"
    many = "namespace a {\n" + "".join(f"Result<int> f{i}(int a, int b) {{\n{body(30)}}}\n" for i in range(10)) + "}  // {\n"
    table = "namespace a {\nconstexpr Row kRows[] = {\n" + "    {\"x\", f(1)},\n" * 300 + "};\nint g() {\n" + body(5) + "}\n}\n"
    raw = 'const char* kText = R"x(\nint f() {\n' + "\n" * 100 + ')x";\n'
    for name, files, faults in (
        ("good", {"a/x.cpp": many, "a/t.cpp": table, "a/r.cpp": raw}, 0), ("function", {"a/x.cpp": long}, 1),
        ("constructor", {"a/x.cpp": "A::A(int b)\n    : b_(b), c_{1} {\n" + body(90) + "}\n"}, 1),
        ("operator", {"a/x.h": "bool operator==(const A& a, const B& b) {\n" + body(90) + "}\n"}, 1),
        ("python", {"a/x.py": "def f():\n" + "    pass\n" * 90}, 1), ("file", {"a/x.h": "\n" * 801}, 1),
        ("folder", {f"a/{i}.cpp": "" for i in range(13)}, 1), ("folders", {f"a/{i % 2}/{i}.cpp": "" for i in range(24)}, 0)):
        got = check(files)
        if len(got) != faults:
            raise SystemExit(f"size: self-test '{name}': {faults} faults expected, got {got}")
    print("size: self-test passes")


def main():
    if "--self-test" in sys.argv:
        self_test()
        return
    root = pathlib.Path(__file__).resolve().parents[2]
    names = [p.relative_to(root).as_posix() for top in TOPS for p in sorted((root / top).rglob("*")) if p.suffix in CPP + (".py",)]
    names = [n for n in names if not DATA.search(n)]
    faults = check({n: (root / n).read_text() for n in names})
    print("\n".join(faults) if faults else f"size: {len(names)} files are small")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
