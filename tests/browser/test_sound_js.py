"""denoise and detectSpeech in Chromium, on a microphone that plays a file and in an OfflineAudioContext."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from pyodide_pkg import core
from web_demo.packaging import npm_package

from . import sound_cases
from .conftest import CHROMIUM, FLAGS, served
from .typescript import compiler

HERE = Path(__file__).parent

MICROPHONE = ["--use-fake-ui-for-media-stream", "--autoplay-policy=no-user-gesture-required"]

SCRIPTS = {
    re.findall(r"^const (\w+)", text, re.MULTILINE)[0]: text
    for text in re.findall(r"```js\n(.*?)```", (HERE.parents[1] / "docs" / "sound.md").read_text(), re.DOTALL)
}
"""Those of docs/sound.md, by the name of what they make."""


@pytest.fixture(scope="module")
def page(host: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Its microphone plays speech in noise."""
    site = sound_cases.write_site(host, tmp_path_factory.mktemp("sound") / "site")
    shutil.copy(site / "wake.rnn", site / "hey_computer.rnn")
    for name, script in SCRIPTS.items():
        text = re.sub(r'"webrnn/(\w+)"', r'"./\1.js"', script)
        (site / f"docs_{name}.js").write_text(f"{text}\nexport {{ {name} }};\n")
    capture = f"--use-file-for-fake-audio-capture={site / 'noisy.wav'}"
    with sync_playwright() as playwright, served(site) as address:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *MICROPHONE, capture])
        page = browser.new_page()
        page.goto(f"{address}empty.html")
        page.mouse.click(1, 1)
        yield page
        browser.close()


@pytest.mark.parametrize("what", ["bits", "dry", "tracks", "misuse", "liveKit"])
def test_denoise(page: Page, what: str) -> None:
    assert page.evaluate(f"import('/sound_denoise.js').then((tests) => tests.{what}())") == []


def test_the_first_sample_comes(page: Page) -> None:
    found = page.evaluate("import('/sound_denoise.js').then((tests) => tests.timeToFirstSample({ prefetch: true }))")
    assert 0 < found["resolved"] <= found["first"]


@pytest.mark.parametrize("what", ["bits", "chained", "live", "ended", "micVAD"])
def test_speech(page: Page, what: str) -> None:
    assert page.evaluate(f"import('/sound_speech.js').then((tests) => tests.{what}())") == []


@pytest.mark.parametrize("what", ["heads", "wholeWord", "misuse"])
def test_wake_words(page: Page, what: str) -> None:
    assert page.evaluate(f"import('/sound_wake_word.js').then((tests) => tests.{what}())") == []


RUN_SCRIPT = """async (name) => {
    globalThis.transcribe = () => {};
    globalThis.connection = { addTrack: () => {} };
    globalThis.samples = new Float32Array(await (await fetch("noisy.f32")).arrayBuffer());
    const made = (await import(`/docs_${name}.js`))[name];
    if (Array.isArray(made)) return made.length > 0;
    await (made.destroy ?? made.stop).call(made);
    return true;
}"""


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_of_the_page(page: Page, name: str) -> None:
    assert page.evaluate(RUN_SCRIPT, name)


def test_types(tmp_path: Path) -> None:
    package = tmp_path / "node_modules" / "webrnn"
    package.mkdir(parents=True)
    for file in npm_package.SOURCES.glob("*.d.ts"):
        shutil.copy(file, package)
    exports = {f"./{name}": {"types": f"./{name}.d.ts", "default": f"./{name}.js"} for name in ("audio", "vad")}
    (package / "package.json").write_text(json.dumps({"name": "webrnn", "type": "module", "exports": exports}))
    shutil.copy(HERE / "sound_types.ts", tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"]
    command = [core.node(), str(compiler()), *options, "sound_types.ts"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120).stdout == ""
