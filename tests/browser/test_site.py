"""The site of the docs, built and clicked through."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from web_demo.site import api_javascript, api_python, charts, pages
from web_demo.site.layout import POLICY
from webrnn.web.folders import page_files

from .axe import violations, violations_anywhere
from .demo_page import LOAD_MS, SCREENSHOTS, wait_for
from .demo_page import problems as trouble
from .site_files import PATH, Found, broken_links, open_page, read, visiting, write_site

ROOT = Path(__file__).parents[2]
FIRST_PAGE_BYTES = 120_000
FIRST_PAGE_REQUESTS = 6


@pytest.fixture(scope="module")
def root(full_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site(tmp_path_factory.mktemp("site"), full_demo)


@pytest.fixture(scope="module")
def site(root: Path) -> Path:
    return root / PATH


@pytest.fixture(scope="module")
def read_pages(site: Path) -> dict[str, Found]:
    """Every page, the playground too, by its address."""
    return {file.relative_to(site).as_posix(): read(file) for file in sorted(site.rglob("*.html"))}


@pytest.fixture
def visit(browser: Browser, root: Path) -> Iterator[tuple[BrowserContext, str, list[str]]]:
    """Afterwards nothing may have been asked elsewhere, missing, refused or complained about."""
    with visiting(browser, root, viewport={"width": 1280, "height": 900}) as (context, address, problems):
        yield context, address, problems
        for page in context.pages:
            problems += page.evaluate("violations")
        assert problems == []


def test_every_document_is_a_page(read_pages: dict[str, Found]) -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    expected = {pages.address_of(file.relative_to(ROOT).as_posix()) for file in documents}
    expected |= {f"api/{name}.html" for name in api_python.MODULES}
    expected |= {"api/javascript.html", "benchmarks.html", "notebook.html", "playground/index.html"}
    assert set(read_pages) == expected


def test_the_generator_is_no_part_of_the_page() -> None:
    """What `webrnn serve` shows, and wheels have, does not grow by it."""
    assert not [file for file in page_files() if Path(pages.__file__).parent in file.parents]


def test_every_page_is_in_the_navigation() -> None:
    entries = [entry.address for of in pages.groups().values() for entry in of]
    assert set(entries) == {source.address for source in pages.sources()} | {"benchmarks.html"}


def test_all_links_and_anchors_lead_somewhere(site: Path, read_pages: dict[str, Found]) -> None:
    assert broken_links(site, read_pages) == []


def test_a_broken_link_is_found(site: Path, read_pages: dict[str, Found]) -> None:
    bad = ["nowhere.html", "#nowhere", "docs/web.html#nowhere", "../outside.html", "http://plain.example", "https://x"]
    assert len(broken_links(site, {**read_pages, "index.html": Found(bad)})) == len(bad) + _from_elsewhere(read_pages)


def _from_elsewhere(read_pages: dict[str, Found]) -> int:
    """Links of other pages to headings of the start page, which has none then."""
    return sum(
        bool(re.search(r"(?:^|/)index\.html#", link)) and "playground" not in link and address != "index.html"
        for address, found in read_pages.items()
        for link in found.links
    )


def test_a_document_with_a_broken_link_stops_the_build() -> None:
    source = pages.Source("docs/x.html", "docs/x.md", "[there](nowhere.md)")
    with pytest.raises(pages.BrokenLink, match=r"docs/x\.md: nowhere\.md leads nowhere"):
        pages.Links(set()).renderer(source).render(source.text)


def test_every_page_says_what_it_is(read_pages: dict[str, Found], site: Path) -> None:
    for address, found in read_pages.items():
        assert found.language == "en", address
        assert found.title, address
        assert 20 <= len(found.description) <= 200, (address, found.description)
        assert found.headings == 1, address
        assert not found.without_alt, address
        text = (site / address).read_text()
        assert POLICY in text, address
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=\"", text), f"inline in {address}"


def test_the_reference_has_all_public_names(site: Path) -> None:
    import webrnn

    text = read(site / "api/webrnn.html").anchors
    assert {name.lower() for name in webrnn.__all__ if name[0].isupper()} <= text
    assert {"inferencesessionstream", "streamstep", "streampooltick", "optimize", "map"} <= text
    names = {
        name
        for file in api_javascript.entries().values()
        for name, *_ in api_javascript.declarations(api_javascript.HOST / file)
    }
    exported = {
        name
        for file in api_javascript.HOST.glob("*.d.ts")
        for name in re.findall(
            r"^export (?:declare )?(?:abstract )?(?:class|interface|function|const|type) (\w+)", file.read_text(), re.M
        )
    }
    assert names == exported
    page = (site / "api/webrnn.html").read_text()
    assert "&gt;&gt;&gt;" in page, "examples of docstrings"
    assert 'href="../docs/formats.html"' in page, "pages that docstrings name"


def test_the_reference_is_the_same_on_each_machine(site: Path) -> None:
    for name in api_python.MODULES:
        page = api_python.page(name)
        assert str(ROOT) not in page, name
        assert " object at 0x" not in page, name
    assert "folder: Path = FOLDER" in api_python.page("webrnn.engine.kernels")
    for file in site.glob("static/*.js*"):
        assert str(ROOT) not in file.read_text(), file


def test_a_path_without_a_name_is_no_default() -> None:
    def function(folder: Path = ROOT / "somewhere") -> None: ...

    with pytest.raises(ValueError, match="the path that folder is by default has no name"):
        api_python._signature("function", function)


def test_charts_have_the_figures_of_their_tables(site: Path) -> None:
    text = (site / "benchmarks.html").read_text()
    assert text.count('<svg class="chart"') >= 5
    assert text.count("<desc ") == text.count('<svg class="chart"') == len(re.findall("<title id=", text))
    table = charts.Table(
        ["model", "÷ a", "b", "÷ a"], [["x", "0.5 / 0.25", "1,000 (2×)", "-"], ["y", "**2**", "", "1,5"]]
    )
    assert table.ratios == [1, 2, 3]
    assert charts.numbers("0.5 / 0.25") == [0.5, 0.25]
    assert charts.numbers("1,000 (2×)") == [2]
    assert charts.numbers("-") == []
    drawn = charts.chart(table, "t", 1)
    assert len(re.findall(r'<(?:circle|rect|path) class="mark', drawn)) == 3 + 5, "a mark for each name and each ratio"
    assert "÷ a: 0.25 to 2, median 0.5" in drawn


def test_every_page_opens(visit: tuple[BrowserContext, str, list[str]], read_pages: dict[str, Found]) -> None:
    context, address, problems = visit
    page = open_page(context, address, problems)
    for place in read_pages:
        page.goto(address + place, wait_until="domcontentloaded")
        expect(page.locator("html")).to_have_attribute("data-ready", "true")
        assert page.evaluate("violations") == [], place


def test_the_search_finds(visit: tuple[BrowserContext, str, list[str]]) -> None:
    context, address, problems = visit
    page = open_page(context, f"{address}docs/plans.html", problems)
    page.keyboard.press("/")
    page.keyboard.type("whole sequences internal")
    expect(page.locator("#found a").first).to_be_visible()
    assert "found" in page.locator("#found-count").inner_text()
    assert violations(page) == []
    page.fill("#search", "inferencesession.stream")
    expect(page.locator("#found a b").first).to_have_text("InferenceSession.stream")
    page.fill("#search", "no such w(rd")
    expect(page.locator("#found .none")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#found")).to_be_hidden()
    page.fill("#search", "audio thread")
    expect(page.locator("#found a").nth(1)).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    target = page.locator("#found a").nth(1).get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(str(target))


def test_examples_run(visit: tuple[BrowserContext, str, list[str]]) -> None:
    context, address, problems = visit
    page = open_page(context, f"{address}docs/web.html", problems)
    assert _run(page) == "done", page.locator(".output").inner_text()
    lines = page.locator(".output").inner_text().splitlines()
    assert lines[0].startswith("0 Float32Array(1) [0.")
    assert lines[-1] == "kernels: relaxed · states: [h]"
    _change(page, 'console.log("changed"); nowhere();')
    assert _run(page) == "failed"
    assert page.locator(".output").inner_text().splitlines() == ["changed", "ReferenceError: nowhere is not defined"]
    page.get_by_role("button", name="Reset").click()
    assert _run(page) == "done"

    page.goto(f"{address}docs/streaming.html")
    assert _run(page) == "done", page.locator(".output").inner_text()
    assert page.locator(".output").inner_text().startswith("the same bits: True\n")
    _change(page, "import webrnn\nwebrnn.InferenceSession(b'')")
    assert _run(page) == "failed"
    told = page.locator(".output").inner_text()
    assert 'File "example.py", line 2' in told
    assert "ModelError" in told
    assert violations(page) == []


def _run(page: Page) -> str:
    page.evaluate("delete document.querySelector('.live').dataset.state")
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".live")).to_have_attribute("data-state", re.compile("done|failed"), timeout=LOAD_MS)
    return str(page.locator(".live").get_attribute("data-state"))


def _change(page: Page, code: str) -> None:
    page.locator(".live code").focus()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.insert_text(code)


LIVE = [
    (file.name, text)
    for file in [*sorted((ROOT / "docs").glob("*.md")), Path(pages.__file__).with_name("notebook.md")]
    for text in re.findall(r"^```python live\n(.*?)^```$", file.read_text(), re.M | re.S)
]


@pytest.mark.parametrize(("name", "text"), LIVE, ids=[name for name, _ in LIVE])
def test_live_examples_run_natively(name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(text, name, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out


def test_the_notebook_runs_natively(capsys: pytest.CaptureFixture[str]) -> None:
    cells = json.loads(Path(pages.__file__).with_name("gru.ipynb").read_text())["cells"]
    names: dict = {"__name__": "__main__"}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert "the same bits: True" in capsys.readouterr().out


def test_the_playground_runs_a_model(visit: tuple[BrowserContext, str, list[str]]) -> None:
    context, address, problems = visit
    page = open_page(context, address, problems)
    page.get_by_role("link", name="Playground").click()
    expect(page.locator("html")).to_have_attribute("data-ready", "true")
    page.locator('#your-model-app [data-model="gru_256"]').click()
    wait_for(page, "your-model", "ready", "failed")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#your-model-app .outputs")).to_be_visible(timeout=LOAD_MS)
    wait_for(page, "your-model", "ready", "failed")
    assert trouble(page, "your-model") == []
    page.locator(".brand").click()
    page.wait_for_url(f"{address}index.html")


def test_the_first_page_keeps_to_its_budget(browser: Browser, root: Path) -> None:
    with visiting(browser, root, viewport={"width": 1280, "height": 900}) as (context, address, problems):
        sizes: dict[str, int] = {}
        context.on("response", lambda response: sizes.update({response.url: len(response.body())}))
        page = open_page(context, address, problems)
        page.wait_for_load_state("networkidle")
        context.pages[0].wait_for_timeout(100)
        shift, fonts, paint = page.evaluate("""() => new Promise((resolve) => {
            let shift = 0;
            new PerformanceObserver((list) => list.getEntries().forEach(({ value }) => (shift += value)))
                .observe({ type: "layout-shift", buffered: true });
            const paint = performance.getEntriesByName("first-contentful-paint")[0].startTime;
            requestAnimationFrame(() => setTimeout(() => resolve([shift, document.fonts.size, paint])));
        })""")
        print(f"\nfirst page: {len(sizes)} requests, {sum(sizes.values()):,} bytes, first paint after {paint:.0f} ms")
        assert problems == []
    assert len(sizes) <= FIRST_PAGE_REQUESTS, sizes
    assert sum(sizes.values()) <= FIRST_PAGE_BYTES, sizes
    assert fonts == 0, "fonts of its own would come late"
    assert shift < 0.01


@pytest.mark.parametrize("place", ["index.html", "benchmarks.html"])
def test_axe_finds_nothing(visit: tuple[BrowserContext, str, list[str]], place: str) -> None:
    context, address, problems = visit
    page = open_page(context, address + place, problems)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"site-{place.removesuffix('.html')}.png")
    assert violations_anywhere(page) == []


@pytest.mark.parametrize("place", ["api/webrnn.audio.html", "docs/building.html"])
def test_pages_fit_a_phone(visit: tuple[BrowserContext, str, list[str]], place: str) -> None:
    context, address, problems = visit
    page = open_page(context, address + place, problems)
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="All pages").click()
    expect(page.locator("#page-list")).to_be_visible()
    assert violations(page) == []


def test_the_colours_that_were_chosen_stay(visit: tuple[BrowserContext, str, list[str]]) -> None:
    context, address, problems = visit
    page = open_page(context, address, problems)
    for label in ("Colours: light", "Colours: dark"):
        page.locator("#theme").click()
        expect(page.locator("#theme")).to_have_attribute("aria-label", label)
    page.goto(f"{address}docs/plans.html")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 18, 20)"
