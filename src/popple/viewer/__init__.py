"""The browser viewer: a report as one HTML file, or served on this machine.

In: a report, through `popple.report`. Out: a page. The page itself is written in
TypeScript (`viewer/` in the repository) and lies here ready built, as
`static/index.html`, so that using the viewer needs no Node.
"""

from popple.viewer.page import render_page, write_html
from popple.viewer.serve import ViewerServer, serve

__all__ = ["ViewerServer", "render_page", "serve", "write_html"]
