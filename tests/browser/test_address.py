"""The address names what is seen, and opens it again in another session."""

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect

from tests.browser.conftest import TITLES, go_to, open_tab, settled, title_of, visit

DOCUMENT = "inside_the_pipeline.md"


def test_the_address_opens_the_tab_the_document_and_the_chunk(tab, app):
    visit(tab, app, "documents", search=DOCUMENT)
    open_tab(tab, "Chunks")
    tab.reload()
    expect(tab.get_by_role("tab", name="Chunks", selected=True)).to_be_visible()
    tab.goto(f"{app}/chunk?input=Take+a+chunk+of+the+documents&document={DOCUMENT}&chunk=3")
    expect(title_of(tab)).to_have_text(TITLES["chunk"])
    settled(tab)
    expect(tab.get_by_role("spinbutton", name="Chunk (of 16)")).to_have_value("3")
    assert parse_qs(urlsplit(tab.url).query)["chunk"] == ["3"]


def test_the_browser_goes_back_to_a_page_and_forward_again(tab, app):
    tab.context.grant_permissions(["clipboard-write"])  # for the page's script, which is run once more
    visit(tab, app, "documents")
    go_to(tab, TITLES[""])
    settled(tab)
    setting = tab.locator("[data-testid=stHtml] script").evaluate("it => it.textContent")
    tab.go_back()
    expect(title_of(tab)).to_have_text(TITLES["documents"])
    settled(tab)
    # Streamlit may run a page's script again when it is left: sooner or later than the address changes.
    tab.evaluate(setting)
    assert urlsplit(tab.url).path == "/documents"
    tab.go_forward()
    expect(title_of(tab)).to_have_text(TITLES[""])
    settled(tab)
    assert urlsplit(tab.url).path == "/"
