"""The site that `make docs` builds: these pages, and the docstrings of the package."""

from __future__ import annotations

import mqlite

project = "mqlite for Python"
author = "the mqlite for Python authors"
release = mqlite.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = f"mqlite for Python {release}"
html_show_copyright = False

# GitHub's anchors for headings, so that links work there and here.
myst_heading_anchors = 4

# Docstrings put names between single backquotes.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 80
