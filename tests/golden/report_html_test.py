#!/usr/bin/env python3
"""report.html as a browser without scripts and without a network sees it.

Checks every golden page: tags balance, nothing is fetched or executed, pictures have a text
alternative, and each figure of a simulated run carries its label.
Usage: report_html_test.py ROOT
"""
import glob
import os
import re
import sys
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link"}
FETCHING = {"script", "link", "img", "iframe", "object", "embed", "audio", "video", "source", "base", "form"}


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.path, self.stack, self.problems = path, [], []
        self.figures = self.tagged_figures = self.tables = self.captions = 0
        self.in_figure_tag = False

    def complain(self, text):
        self.problems.append(f"{self.path}:{self.getpos()[0]}: {text}")

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag in FETCHING:
            self.complain(f"<{tag}> fetches or runs something")
        for name, value in attributes.items():
            if name.startswith("on") or name in ("src", "href", "srcset", "style"):
                self.complain(f'{name}="{value}" is not allowed')
        if tag == "svg" and not (attributes.get("aria-label") or attributes.get("aria-hidden")):
            self.complain("a picture without a text alternative")
        if tag == "figure":
            self.figures += 1
        if tag == "span" and "tag" in attributes.get("class", "").split() and "figcaption" in self.stack:
            self.tagged_figures += 1
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attributes):
        if tag in FETCHING:
            self.complain(f"<{tag}> fetches or runs something")

    def handle_endtag(self, tag):
        if not self.stack or self.stack.pop() != tag:
            self.complain(f"</{tag}> closes nothing")

    def finish(self):
        self.close()
        if self.stack:
            self.complain(f"never closed: {self.stack}")
        if self.figures != self.tagged_figures:
            self.complain(f"{self.figures} figures, {self.tagged_figures} of them labelled simulated or measured")
        return self.problems


def check(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    page = Page(path)
    page.feed(text)
    problems = page.finish()
    for pattern in (r"https?://", r"@import", r"url\("):
        if re.search(pattern, text):
            problems.append(f"{path}: holds {pattern}: the page must be complete offline")
    if "NaN" in text or "inf " in text:
        problems.append(f"{path}: a figure is not a number")
    return problems


# The checks themselves must be able to fail.
BROKEN = {
    "<p><b>x</p>": "closes nothing",
    "<script>1</script>": "fetches or runs",
    '<p onclick="x">y</p>': "not allowed",
    "<svg></svg>": "text alternative",
    "<figure><figcaption>x</figcaption></figure>": "labelled",
    "<div>": "never closed",
}


def main():
    problems = []
    for text, expected in BROKEN.items():
        page = Page("self-test")
        page.feed(text)
        if not any(expected in problem for problem in page.finish()):
            problems.append(f"self-test: {text} passes, expected a complaint about '{expected}'")
    pages = sorted(glob.glob(os.path.join(sys.argv[1], "tests/golden/expected/*.html")))
    if not pages:
        problems.append("no golden page found")
    for path in pages:
        problems += check(path)
    print("\n".join(problems) if problems else f"{len(pages)} pages, nothing to say")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
