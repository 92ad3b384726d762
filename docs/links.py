#!/usr/bin/env python3
"""Checks the links between the repository's Markdown pages, and that the site has every page.

Out: `documents: FAILED: path:line: mistake`. Exit: 0 without mistakes, 1 with mistakes.

A relative link leads to a file of the repository, and its fragment to a heading of that page, as
GitHub and mdBook name headings. Each page below docs is in docs/SUMMARY.md, since mdBook leaves
others out.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")


def prose(text):
    """(line number, line) of the text outside of fenced blocks and inline code."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, re.sub(r"`[^`]*`(?!\])", "", line)


def anchors(page):
    """The fragments of the headings of a page."""
    found = set()
    fenced = False
    for line in page.read_text().split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        heading = re.match(r"#+ (.*)", line)
        if heading and not fenced:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "")
            name = re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")
            names = [name] + [f"{name}-{number}" for number in range(1, len(found) + 1)]
            found.add(next(name for name in names if name not in found))
    return found


def mistakes_of(page):
    """The links of a page that lead nowhere."""
    for number, line in prose(page.read_text()):
        for path, fragment in LINK.findall(line):
            if ":" in path:
                continue
            target = (page.parent / path).resolve() if path else page
            link = f"{path}#{fragment}" if fragment else path
            if not target.exists():
                yield number, f"{link}: there is no such file"
            elif fragment and target.suffix == ".md" and fragment not in anchors(target):
                yield number, f"{link}: that page has no such heading"


def main():
    """Prints every mistake."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "*.md"]
    listed = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    pages = [ROOT / name for name in listed if (ROOT / name).exists()]
    found = [(page.relative_to(ROOT), *mistake) for page in pages for mistake in mistakes_of(page)]
    summary = ROOT / "docs/SUMMARY.md"
    links = LINK.findall(summary.read_text())
    in_summary = {(summary.parent / path).resolve() for path, _ in links}
    for page in pages:
        if ROOT / "docs" in page.parents and page != summary and page not in in_summary:
            found.append((page.relative_to(ROOT), 1, "the page is not in docs/SUMMARY.md"))
    for path, line, text in found:
        print(f"documents: FAILED: {path}:{line}: {text}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
