import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import expect, sync_playwright

from engine.weights.catalog import DEFAULT_DECODER, DEFAULT_ENCODER, KNOWN_MODELS
from engine.weights.fetch import known_model_path
from ui.server_settings import OFF, WORKSPACES

ROOT = Path(__file__).parent.parent.parent
# With every tab Chromium would load the suggestions of its address bar, a page of 0.6 CPU-seconds; the other
# features are those that Playwright switches off by the argument that this one replaces.
SWITCHED_OFF = (
    "WebUIOmniboxPopup,WebUIOmniboxAimPopup,AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,"
    "HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,LensOverlay,MediaRouter,PaintHolding,OptimizationHints,"
    "ThirdPartyStoragePartitioning,AvoidCorsURLLoaderRestartOnRedirect,NetworkTimeServiceQuerying,AimEnabled,"
    "PreconnectToSearch"
)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    f"--disable-features={SWITCHED_OFF}",
    # No test stays on a page for long enough to earn back what V8's best compiler and many collections take.
    "--js-flags=--no-opt --min-semi-space-size=64",
]
WIDE, NARROW = {"width": 1440, "height": 1000}, {"width": 390, "height": 844}
# The title of every page by its address.
TITLES = {
    address: title
    for title, address in re.findall(
        r"^\| \[(.+)\]\(http://localhost:8501/(\w*)\)",
        (ROOT / "docs" / "pages.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
}
PATIENCE = 120_000  # milliseconds; what is there sooner is not waited for
expect.set_options(timeout=PATIENCE)
# What moves is drawn over and over by the processor, and a click may miss it; it still ends, and says so.
# Ended by force, the animation of a section that opens would leave it closed.
STILL = """addEventListener("DOMContentLoaded", () => {
    const style = document.createElement("style");
    style.textContent =
        "*, ::before, ::after { animation-duration: 0s !important; transition-duration: 0s !important }";
    document.head.append(style);
});
const animate = Element.prototype.animate;
Element.prototype.animate = function (...keyframes) {
    const animation = animate.apply(this, keyframes);
    animation.effect.updateTiming({ delay: 0, duration: 1 });
    return animation;
};"""
# Streamlit keeps in the browser whether the sidebar is open: an open one would cover the next narrow tab.
CLOSED_SIDEBAR = 'if (location.protocol === "http:") localStorage.removeItem("stSidebarCollapsed-");'
# Streamlit sends some widgets' values late, by timers: sliders after 200 ms, tables after 150 ms.
TIMERS = """const { setTimeout: begin, clearTimeout: end } = window, timers = new Set();
window.setTimeout = (action, delay = 0, ...values) => {
    const timer = begin(() => { timers.delete(timer); action(...values); }, delay);
    if (delay <= 300) timers.add(timer);
    return timer;
};
window.clearTimeout = (timer) => { timers.delete(timer); end(timer); };
window.untilTimersEnd = async () => {
    const latest = performance.now() + 300;  // some begin anew for ever
    do await new Promise((over) => begin(over, 10)); while (timers.size && performance.now() < latest);
};"""
# The page's own clock, as a slow page sends late; the server answers in the order in which it is sent to.
# A connection that the server closes just then fails once.
HEARD = """async () => {
    const answer = () => fetch("/_stcore/health");
    await untilTimersEnd();
    await answer().catch(answer);
    await new Promise((over) => setTimeout(over, 50));
    await answer().catch(answer);
}"""


@pytest.fixture(scope="session")
def browser():
    if not chromium():
        message = "no Chromium: install the package chromium-headless-shell to run the browser tests"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


def chromium():
    """The path of the system's Chromium; the one without windows takes a third less of the processor."""
    names = ("chromium-headless-shell", "chromium", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


def launch(playwright):
    """Start the system's Chromium."""
    return playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)


@contextmanager
def serve(log: Path, **environment: str):
    """The app at an address of its own; its log may not hold a traceback when the tests with it are over.

    It keeps nothing, unless the environment names a folder.
    """
    with served(log, **environment) as (url, _):
        yield url


@contextmanager
def served(log: Path, **environment: str):
    """The address of `serve`, and the number of the process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "streamlit_app.py", "--server.headless", "true"]
    command += ["--server.port", str(port)]  # at every address of the machine, as README's command serves
    with log.open("w") as output:
        server = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, WORKSPACES: OFF, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_healthy(url, server, log)
        yield url, server.pid
        written = log.read_text()  # what Streamlit writes while it is being stopped is not the app's
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
    for stack in ("Traceback", "most recent call last"):
        assert stack not in written, written


def wait_until_healthy(url: str, server: subprocess.Popen, log: Path) -> None:
    latest = time.monotonic() + PATIENCE / 1000
    while server.poll() is None and time.monotonic() < latest:
        try:
            urllib.request.urlopen(f"{url}/_stcore/health", timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"the app did not start:\n{log.read_text()}")


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    """Address and process of the running app, one for all tests of a worker."""
    # Whatever is fetched, is fetched now.
    for name in (DEFAULT_ENCODER, DEFAULT_DECODER):
        known_model_path(KNOWN_MODELS[name])
    log = tmp_path_factory.mktemp("app") / "log.txt"
    with served(log) as running:
        yield running


@pytest.fixture(scope="session")
def app(running):
    return running[0]


@pytest.fixture(scope="session")
def process(running):
    return running[1]


@contextmanager
def window(browser, viewport):
    """A window whose tabs share what the browser knows of the app's scripts, no more."""
    context = browser.new_context(viewport=viewport)
    context.set_default_timeout(PATIENCE)
    context.add_init_script(STILL)
    context.add_init_script(TIMERS)
    context.add_init_script(CLOSED_SIDEBAR)
    yield context
    context.close()


@pytest.fixture(scope="session")
def wide_window(app, browser):
    with window(browser, WIDE) as context:
        yield context


@pytest.fixture(scope="session")
def narrow_window(app, browser):
    with window(browser, NARROW) as context:
        yield context


@pytest.fixture
def tab(wide_window):
    with wide_window.new_page() as tab:
        yield tab


@pytest.fixture(scope="module")
def kept_tab(wide_window):
    """A wide tab that the tests of a file share, where each sets all that it looks at."""
    with wide_window.new_page() as tab:
        yield tab


@pytest.fixture
def wide(tab, app, request):
    """The page that a file's tests are about, by the file's ADDRESS, in a wide tab of its own."""
    return visit(tab, app, request.module.ADDRESS)


@pytest.fixture
def narrow_tab(narrow_window):
    with narrow_window.new_page() as tab:
        yield tab


@pytest.fixture
def narrow(narrow_tab, app, request):
    return visit(narrow_tab, app, request.module.ADDRESS)


def visit(page, url, address="", **query):
    """Open a page of the app by its address, as with a document to ``search``, and wait until it is drawn."""
    page.goto(f"{url}/{address}?{urlencode(query)}")
    expect(title_of(page)).to_have_text(TITLES[address])
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


def title_of(page):
    return page.get_by_test_id("stMain").get_by_role("heading", level=1)


def go_to(page, title):
    """Open a page by the menu, and wait until nothing of the one before is left."""
    [address] = [address for address, found in TITLES.items() if found == title]
    folders = [path.parts[-3] for path in ROOT.glob(f"pages/*/{address}/page.py") if address]
    if is_narrow(page):
        open_sidebar(page)
        link = page.get_by_test_id("stSidebarNavLink").filter(has_text=exactly(title))
        more = page.get_by_test_id("stSidebarNavViewButton")
        if not link.is_visible():
            more.click()
        link.click()
    elif not folders:
        page.get_by_test_id("stTopNavLink").filter(has_text=exactly(title)).click()
    else:
        link = page.get_by_test_id("stTopNavDropdownLink").filter(has_text=exactly(title))
        press_until(page.get_by_test_id("stTopNavSection").filter(has_text=folders[0].capitalize()), link)
        link.click()
    expect(title_of(page)).to_have_text(title)
    settled(page)
    if is_narrow(page):
        close_sidebar(page)


def exactly(text):
    """A pattern of an element's whole text, but for the name of the icon before it."""
    return re.compile(rf"(^|[a-z_])\s*{re.escape(text)}$")


def is_narrow(page):
    return page.viewport_size["width"] < 500


def open_sidebar(page):
    sidebar = page.get_by_test_id("stSidebar")
    if sidebar.get_attribute("data-collapsed") != "false":
        page.get_by_test_id("stExpandSidebarButton").click()
        expect(sidebar).to_have_attribute("data-collapsed", "false")


def close_sidebar(page):
    sidebar = page.get_by_test_id("stSidebar")
    if sidebar.get_attribute("data-collapsed") == "false":
        page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()
        expect(sidebar).to_have_attribute("data-collapsed", "true")


def open_tab(page, name):
    """Open a tab of the page, and wait until it is drawn."""
    tab = page.get_by_test_id("stMain").get_by_role("tab", name=name, exact=True)
    press_until(tab, page.get_by_role("tab", name=name, exact=True, selected=True))
    settled(page)
    return page.get_by_role("tabpanel", name=name)


def open_chapter(page, name):
    """Open a chapter of the tab that is open, and wait until it is drawn."""
    page.locator("[class*=st-key-chapters-]").get_by_text(name, exact=True).click()
    settled(page)


def assert_fits(page):
    """Nothing is wider than the screen, and nothing went wrong."""
    expect(page.locator("[data-testid=stException], [data-testid=stAlertContentError]")).to_have_count(0)
    assert_no_wider(page)


def assert_no_wider(page):
    """The page does not scroll sideways; figures and tables may."""
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"], page.url
    assert page.get_by_test_id("stMain").evaluate("main => main.scrollWidth <= main.clientWidth"), page.url


def upload(page, *files):
    chooser = page.locator("input[type=file]")
    expect(chooser).to_have_count(1)
    chooser.set_input_files(
        [{"name": name, "mimeType": "text/plain", "buffer": content} for name, content in files]
    )
    picked = page.get_by_test_id("stMultiSelect").first
    expect(picked.get_by_text(files[-1][0], exact=True)).to_be_visible()
    settled(page)


def fill_in(page, label, text, key="Enter"):
    box = page.get_by_role("textbox", name=label, exact=True)
    box.fill(text)
    box.press(key)
    settled(page)


def fill_area(page, label, text):
    fill_in(page, label, text, "Control+Enter")


def press_slider(page, label, *keys):
    thumb = page.get_by_role("slider", name=label)
    thumb.focus()
    for key in keys:
        thumb.press(key)
    settled(page)


def figures(page):
    return page.get_by_test_id("stPlotlyChart")


def open_section(page, name):
    page.locator("[data-testid=stSidebar] summary", has_text=name).click()


def press_until(button, answer):
    """Press, and again where no answer shows, as a click falls between two drawings; for a minute at most."""
    for _ in range(4):
        with suppress(PlaywrightTimeout):
            button.click(timeout=5_000)
        with suppress(PlaywrightTimeout):
            return answer.first.wait_for(timeout=10_000)
    return pytest.fail(f"{answer} is not there, whatever is pressed of {button}")
