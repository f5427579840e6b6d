import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import expect, sync_playwright

ROOT = Path(__file__).parent.parent.parent
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
WIDE, NARROW = {"width": 1440, "height": 1000}, {"width": 390, "height": 844}
# What moves is drawn over and over by the processor, and a click may miss it; it still ends, and says so.
STILL = """addEventListener("DOMContentLoaded", () => {
    const style = document.createElement("style");
    style.textContent =
        "*, ::before, ::after { animation-duration: 0s !important; transition-duration: 0s !important }";
    document.head.append(style);
});
const animate = Element.prototype.animate;
Element.prototype.animate = function (...keyframes) {
    const animation = animate.apply(this, keyframes);
    animation.finish();
    return animation;
};"""
# The page's own clock, as a slow page sends late; the server answers in the order in which it is sent to.
HEARD = """async () => {
    for (const pause of [300, 50]) {
        await new Promise((over) => setTimeout(over, pause));
        await fetch("/_stcore/health");
    }
}"""


@pytest.fixture(scope="session")
def browser():
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    if executable is None:
        message = "no Chromium: install the package chromium to run the browser tests"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def serve(log: Path, **environment: str):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "streamlit_app.py", "--server.headless", "true"]
    command += ["--server.address", "127.0.0.1", "--server.port", str(port)]
    command += ["--server.fileWatcherType", "none"]  # what is edited meanwhile is not what is tested
    with log.open("w") as output:
        server = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **environment}, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_healthy(url, server, log)
        yield url
    finally:
        server.terminate()
        server.wait(timeout=30)


def wait_until_healthy(url: str, server: subprocess.Popen, log: Path) -> None:
    for _ in range(300):
        if server.poll() is not None:
            break
        try:
            urllib.request.urlopen(f"{url}/_stcore/health", timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"the app did not start:\n{log.read_text()}")


@pytest.fixture(scope="session")
def app(tmp_path_factory, encoder, decoder):
    """Address of the running app; the models are in the cache already."""
    log = tmp_path_factory.mktemp("app") / "log.txt"
    with serve(log) as url:
        yield url
    assert "Traceback" not in log.read_text()


@pytest.fixture(scope="session")
def widths(browser):
    """A window of each width. Tabs of one share what the browser knows of the app's scripts, no more."""
    windows = {"1440px": browser.new_context(viewport=WIDE), "390px": browser.new_context(viewport=NARROW)}
    for window in windows.values():
        window.set_default_timeout(90_000)
        window.add_init_script(STILL)
    yield windows
    for window in windows.values():
        window.close()


@pytest.fixture(params=["1440px", "390px"])
def any_tab(widths, request):
    tab = widths[request.param].new_page()
    yield tab
    tab.close()


@pytest.fixture(scope="module", params=["1440px", "390px"])
def any_kept_tab(widths, request):
    """A tab that the tests of a file share, for what none of them changes."""
    tab = widths[request.param].new_page()
    yield tab
    tab.close()


@pytest.fixture(scope="module")
def kept_tab(widths):
    """A wide tab that the tests of a file share, where each sets all that it looks at."""
    tab = widths["1440px"].new_page()
    yield tab
    tab.close()


@pytest.fixture
def tab(widths):
    tab = widths["1440px"].new_page()
    yield tab
    tab.close()


@pytest.fixture
def page(tab, app):
    return open_app(tab, app)


def open_app(page, url: str):
    page.goto(url)
    page.get_by_label("Your question").wait_for()
    settled(page)
    return page


def drawn(page):
    """Wait until the server has heard of what was just done, and has drawn all that there is so far."""
    page.evaluate(HEARD)
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")


def settled(page):
    """Wait until all is drawn, and nothing more is worked at."""
    drawn(page)
    for waiting in ("stProgress", "stSpinner"):
        expect(page.get_by_test_id(waiting)).to_have_count(0)


def go_to(page, name):
    """Open a page by its link, and wait until nothing of the one before is left."""
    page.get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
    settled(page)


def open_section(page, name):
    page.locator("[data-testid=stSidebar] summary", has_text=name).click()


def fill_in(page, label, text):
    field = page.get_by_role("textbox", name=label, exact=True)
    field.fill(text)
    field.press("Enter")
    settled(page)


def use_server(page, url):
    """Have answers written by the server at an address."""
    open_section(page, "Model")
    page.get_by_test_id("stSidebar").get_by_text("A server", exact=True).click()
    settled(page)
    fill_in(page, "Address", url)


def press_until(button, answer):
    """Press until the answer shows: a page is drawn again and again, and a click may fall between."""
    for _ in range(20):
        with suppress(PlaywrightTimeout):
            button.click(timeout=2_000)
        with suppress(PlaywrightTimeout):
            return answer.first.wait_for(timeout=4_000)
    return expect(answer.first).to_be_visible()
