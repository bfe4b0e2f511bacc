"""Sphinx settings. Everything builds offline; a warning is an error (`make docs`, `make check`)."""

import sys
from pathlib import Path

# Only while our extensions are imported: numba, here and in worker processes, would take the folder `coverage` beside
# this file for the package of that name.
sys.path.insert(0, str(Path(__file__).parent))
import extensions.mathml
import extensions.run_code

sys.path.pop(0)

import cumulant

project = "Cumulant"
author = "The Cumulant authors"
copyright = "2025, The Cumulant authors"
version = release = cumulant.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "extensions.mathml",
    "extensions.run_code",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["guide.css"]
html_title = f"Cumulant {release}"
# Several classes have an attribute of one name (`variables`, `dim`): a name in a docstring may match more than one.
suppress_warnings = ["ref.python"]

# Docstrings write `name` for code and ``formula`` for mathematics in plain characters.
default_role = "code"
napoleon_google_docstring = False
napoleon_numpy_docstring = True
napoleon_use_ivar = True  # attributes are described once, in their class
napoleon_use_rtype = False

autosummary_generate = True
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say what an argument is
autodoc_preserve_defaults = True

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
