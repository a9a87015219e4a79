#!/usr/bin/env python3
"""Checks the links between the pages of the documentation: each file and each section exists.

    tests/links.py PAGE...
"""

import os
import re
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def prose(page):
    """The text of a page without its code blocks."""
    with open(page, encoding="utf-8") as file:
        return re.sub(r"^ *```.*?^ *```", "", file.read(), flags=re.DOTALL | re.MULTILINE)


def anchor(heading):
    """The name that GitHub gives to a section."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.replace("`", "").replace("*", ""))
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def broken(page):
    """The links of a page that lead nowhere."""
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, section = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(target):
            yield link, "no such file"
        elif section and section not in map(anchor, HEADING.findall(prose(target))):
            yield link, "no such section"


problems = [f"{page}: {link}: {why}" for page in sys.argv[1:] for link, why in broken(page)]
print("\n".join(problems) or "links: all is well")
sys.exit(bool(problems))
