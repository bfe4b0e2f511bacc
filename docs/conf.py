"""Sphinx settings. Everything builds offline; a warning is an error (`make docs`, `make check`)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
# Numba imports a package called coverage where there is one; the folder of that name beside this file is none.
sys.modules.setdefault("coverage", None)  # type: ignore[arg-type]

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
