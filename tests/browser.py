"""A headless Chromium for the tests of the page: Debian's, driven by its chromedriver."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)


def missing() -> str | None:
    """Why the browser tests cannot run here, or None."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed"
    absent = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)} (Debian: chromium-driver)" if absent else None


@contextmanager
def chromium(*, width: int = 1440, height: int = 1000, dark: bool = False) -> Iterator[Chrome]:
    """A browser with an empty profile and no network."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory(prefix="chromium-") as profile:
        options = ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for flag in (*FLAGS, f"--user-data-dir={profile}", "--proxy-server=127.0.0.1:9"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = Service(shutil.which("chromedriver"))
        driver = Chrome(options=options, service=service)
        try:
            look(driver, width, height, dark=dark)
            yield driver
        finally:
            driver.quit()


def look(driver: Chrome, width: int, height: int, *, dark: bool) -> None:
    """Set the window's size in pixels and its colour scheme."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})


def open_page(driver: Chrome, page: Path) -> None:
    """Open a report and wait until its explorer and all figures are there."""
    from selenium.webdriver.support.ui import WebDriverWait

    driver.get(page.resolve().as_uri())
    ready = "const d = document.documentElement.dataset; return d.figures === 'drawn'"
    WebDriverWait(driver, 60, poll_frequency=0.05).until(lambda d: d.execute_script(ready))


def console(driver: Chrome) -> list[dict[str, Any]]:
    """What the page's console said: violations of the policy are among it."""
    found: list[dict[str, Any]] = driver.get_log("browser")  # type: ignore[no-untyped-call]
    return found


def screenshot(driver: Chrome, path: Path, *, whole: bool = True) -> None:
    """The whole page, or what is in view, as PNG."""
    import base64

    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": whole})
    path.write_bytes(base64.b64decode(shot["data"]))
