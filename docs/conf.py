"""Sphinx configuration of the manual: `.venv/bin/python -m sphinx -W docs docs/_build`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from mosesplug import __version__

project = "mosesplug"
author = "the mosesplug authors"
project_copyright = author
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "generated_text",
    "live_example",
    "mathml",
]
exclude_patterns = ["_build", "_ext", "examples/.ipynb_checkpoints"]
nitpicky = False

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
html_math_renderer = "mathml"
smartquotes = False  # options begin with two hyphens

napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_custom_sections = [
    (name, "params_style")
    for name in (
        "Other data than lists",
        "How data are read",
        "What is learned",
        "Several runs and validation",
        "Parallel learning",
    )
]
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = f"mosesplug {version}"
html_static_path = ["_static"]
html_css_files = ["mosesplug.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-code-background": "#f3f4f6"},
    "dark_css_variables": {"color-code-background": "#22272e"},
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

# Copy commands without the prompt and the output below them.
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
