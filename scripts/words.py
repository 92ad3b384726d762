#!/usr/bin/env python3
"""Refuses words of scripts/words.toml in comments, messages, help and documents.

In:  files (default: all that git lists). Rust, TypeScript, C, Python, shell, TOML, Markdown.
Out: path:line: rule: excerpt; with --counts, the number for each file and rule.
Exit: 0 without findings, 1 with findings, 2 where a file cannot be read.

Quotations are not prose: inline code and fenced blocks are ignored, as are addresses and the placeholders of formatted strings.
"""

import argparse
import bisect
import collections
import io
import pathlib
import re
import subprocess
import sys
import tokenize
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
C_LIKE = {".rs", ".ts", ".tsx", ".mjs", ".js", ".c", ".h", ".cpp", ".hpp", ".java"}
HASHED = {".sh", ".toml", ".yml", ".yaml", ".cfg", ""}

# A token of a language with C's comments: comment, string (Rust's raw and byte strings, template
# literals), character. Rust's lifetimes are not characters.
TOKEN = re.compile(
    r"""
    (?P<line>//[^\n]*)
    | (?P<block>/\*.*?\*/)
    | (?P<raw>\bb?r(?P<hashes>\#*)".*?"(?P=hashes))
    | (?P<string>\bb?"(?:\\.|[^"\\])*"|"(?:\\.|[^"\\])*")
    | (?P<template>`(?:\\.|[^`\\])*`)
    | (?P<char>'(?:\\.[^']*|[^'\\\n])')
    """,
    re.VERBOSE | re.DOTALL,
)
CODE = re.compile(r"``.*?``|`[^`]*`|\]\([^)]*\)|https?://\S+|<[^<>\s]*>|\$?\{[^{}\s]*\}", re.DOTALL)


class Text:
    """A piece of prose: its kind and its lines as (line number, text)."""

    def __init__(self, kind, lines):
        self.kind, self.lines = kind, lines


def blank(match):
    """White space of the same length and the same line ends."""
    return re.sub(r"[^\n]", "\0", match.group())


def comments_joined(found):
    """Line comments of the same prefix that follow one another, as one text each."""
    groups, last = [], None
    for line, prefix, text in found:
        if last == (line - 1, prefix):
            groups[-1][1].append((line, text))
        else:
            groups.append((prefix, [(line, text)]))
        last = (line, prefix)
    return [Text("doc" if prefix in ("///", "//!") else "comment", lines) for prefix, lines in groups]


def c_like(source, suffix):
    starts = [0] + [at.end() for at in re.finditer("\n", source)]
    number = lambda offset: bisect.bisect_right(starts, offset)
    line_comments, texts = [], []
    for token in TOKEN.finditer(source):
        kind, body, line = token.lastgroup, token.group(), number(token.start())
        if kind == "hashes":
            kind = "raw"
        if kind == "line":
            prefix = re.match(r"//[/!]?", body).group()
            line_comments.append((line, prefix, body[len(prefix):].strip()))
        elif kind == "block":
            lines = [one.strip().lstrip("*").strip() for one in body[2:-2].split("\n")]
            kind = "doc" if body.startswith("/**") else "comment"
            texts.append(Text(kind, [(line + at, one) for at, one in enumerate(lines)]))
        elif kind == "template" and suffix == ".rs":
            continue
        elif kind in ("string", "raw", "template"):
            texts.append(Text("string", [(line + at, one) for at, one in enumerate(body.split("\n"))]))
    return texts + comments_joined(line_comments)


def python(source):
    texts, comments = [], []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            comments.append((line, "#", token.string.lstrip("#!").strip()))
        elif token.type in (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)):
            texts.append(Text("string", [(line + at, one) for at, one in enumerate(token.string.split("\n"))]))
    return texts + comments_joined(comments)


def hashed(source):
    found = []
    for line, text in enumerate(source.split("\n"), 1):
        comment = re.search(r"(?:^|\s)#+(?!!)\s?(.*)$", text)
        if comment:
            found.append((line, "#", comment.group(1).strip()))
        for string in re.finditer(r'"([^"]*)"', text.split(" # ")[0]):
            found.append((line, '"', string.group(1)))
    strings = [Text("string", [(line, text)]) for line, kind, text in found if kind == '"']
    return strings + comments_joined([one for one in found if one[1] == "#"])


def markdown(source):
    lines, fenced = [], False
    for number, text in enumerate(source.split("\n"), 1):
        if re.match(r"\s*(```|~~~)", text):
            fenced = not fenced
            text = ""
        lines.append((number, "" if fenced else text.strip()))
    return [Text("document", lines)]


def texts_of(path, source):
    if path.suffix in C_LIKE:
        return c_like(source, path.suffix)
    if path.suffix == ".py":
        return python(source)
    if path.suffix == ".md":
        return markdown(source)
    if path.suffix in HASHED and (path.suffix or source.startswith("#!") or path.name == "Makefile"):
        return hashed(source)
    return []


def sentences(text):
    """Paragraphs of a text without code, each with the line numbers of its characters."""
    paragraph, at, fenced = "", [], False
    for number, line in text.lines + [(0, "")]:
        if text.kind in ("doc", "comment") and line.startswith("```"):
            fenced, line = not fenced, ""
        if fenced or not line.strip() or re.match(r"([-*|#]|\d+\.)\s", line):
            if paragraph.strip():
                yield paragraph, at
            paragraph, at = "", []
        if fenced:
            continue
        paragraph += line + " "
        at += [number] * (len(line) + 1)


def findings(path, source, rules):
    for text in texts_of(path, source):
        first = True
        for paragraph, at in sentences(text):
            paragraph = CODE.sub(blank, paragraph)
            for rule in rules:
                within = rule.get("within")
                if within and (text.kind not in within or not first):
                    continue
                for match in rule["regex"].finditer(paragraph.lstrip("-*# ") if within else paragraph):
                    start, end = max(0, match.start() - 30), match.end() + 30
                    excerpt = paragraph[start:end].replace("\0", "·").strip()
                    yield at[min(match.start(), len(at) - 1)], rule, excerpt
            first = False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="*", help="files or directories (default: the repository)")
    parser.add_argument("--counts", action="store_true", help="print the number for each file")
    options = parser.parse_args()
    root = HERE.parent
    rules = tomllib.loads((HERE / "words.toml").read_text())["rule"]
    for rule in rules:
        rule["regex"] = re.compile(rule["pattern"], 0 if rule.get("case") else re.IGNORECASE)
    command = ["git", "ls-files", "-co", "--exclude-standard", "--error-unmatch", "--"]
    asked = options.paths or ["."]
    listed = subprocess.run(
        [*command, *asked], capture_output=True, text=True, cwd=None if options.paths else root
    )
    if listed.returncode != 0:
        sys.exit(f"words.py: {listed.stderr.strip()}")
    listed = listed.stdout.split("\n")
    base = pathlib.Path.cwd() if options.paths else root
    skipped = {"scripts/words.toml", "scripts/words.py"}
    counts, status = collections.Counter(), 0
    for name in filter(None, listed):
        path = base / name
        if not path.is_file() or str(path.relative_to(root) if path.is_relative_to(root) else path) in skipped:
            continue
        try:
            source = path.read_text()
        except UnicodeDecodeError:
            continue
        for line, rule, excerpt in findings(path, source, rules):
            counts[name, rule["name"]] += 1
            if not options.counts:
                print(f"{name}:{line}: {rule['name']}: {excerpt} ({rule['instead']})")
            status = 1
    if options.counts:
        for (name, rule), count in sorted(counts.items()):
            print(f"{count:5} {rule:20} {name}")
    return status


if __name__ == "__main__":
    sys.exit(main())
