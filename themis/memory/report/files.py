"""Writes figures as files of their own: SVG always, PNG where a browser is there to draw it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from themis.exceptions import DependencyError
from themis.experiment.export.whole_files import whole_file

__all__ = ["write_figures"]

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
_WIDTH = 960
_SECONDS = 60


def write_figures(figures: Mapping[str, Markup], folder: Path, *, as_png: bool = False) -> list[Path]:
    """`NAME.svg`, and `NAME.png` beside it if wanted."""
    written = []
    for name, svg in figures.items():
        path = folder / f"{name}.svg"
        with whole_file(path) as file:
            file.write(_standalone(svg).encode("utf-8", "backslashreplace"))
        written.append(path)
        if as_png:
            written.append(_drawn(path, _height(svg)))
    return written


def _standalone(svg: Markup) -> str:
    """The figure with the page's style inside, on a ground of its own, at a fixed width."""
    style = (files("themis.comparison") / "templates" / "page.css").read_text(encoding="utf-8")
    style += (files("themis.memory.report") / "templates" / "memory.css").read_text(encoding="utf-8")
    head, _, rest = str(svg).partition(">")
    if "viewBox" in head:
        head += f' width="{_WIDTH}"'
    else:
        head = head.replace('width="100%"', f'width="{_WIDTH}"')
    # A style sheet in an XML file is text: its own angle brackets must not end it.
    quoted = style.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    extra = "svg { background: var(--ground); font-family: system-ui, sans-serif; margin: 0; }"
    return f"{head}><style>{quoted}{extra}</style>{rest}\n"


def _height(svg: Markup) -> int:
    head = str(svg).partition(">")[0]
    if "viewBox" in head:
        width, height = head.partition('viewBox="0 0 ')[2].partition('"')[0].split()
        return round(_WIDTH * int(height) / int(width))
    return int(head.partition('height="')[2].partition('"')[0])


def _drawn(svg: Path, height: int) -> Path:
    browser = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise DependencyError(
            f"PNG files are drawn by a browser; install one of {', '.join(_BROWSERS)}, or use the SVG files"
        )
    target = svg.with_suffix(".png")
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--force-color-profile=srgb",
                f"--user-data-dir={profile}",
                f"--window-size={_WIDTH},{height}",
                f"--screenshot={target.resolve()}",
                svg.resolve().as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=_SECONDS,
        )
    return target
