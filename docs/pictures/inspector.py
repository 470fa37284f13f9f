"""Photographs the inspector: inspector.png.

    make pictures

The page reads its own example, with the small model's tokenizer, in a headless Chromium.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from larksong.api.runtime.background import BackgroundServer
from larksong.api.server import create_app
from larksong.api.settings.settings import Settings
from larksong.api.turns.model import Model
from larksong.engine.backends.model_folder import ModelFolder
from larksong.engine.backends.model_store import find_model
from larksong.engine.backends.replay import ReplayBackend
from larksong.grammars import wire_format

PICTURE = Path(__file__).with_name("inspector.png")
WIDTH, HEIGHT = 1280, 790
STEPS = 15  # back from the end, into the value of a parameter
BACK = "document.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true }))"


def main() -> None:
    """Serve the page and photograph it."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        raise SystemExit("needs chromium and its driver: apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(flag)
    backend = ReplayBackend.from_folder(ModelFolder.open(find_model()), ["Hello."])
    app = create_app([Model(backend, wire_format("qwen3_coder"))], Settings(inspector=True))
    with BackgroundServer(app) as server:
        chrome = webdriver.Chrome(options=options, service=Service(driver))
        try:
            shoot(chrome, server.url.removesuffix("/v1"))
        finally:
            chrome.quit()


def shoot(chrome: webdriver.Chrome, url: str) -> None:
    """The page with its example, some steps before the end."""
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": "light"}
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    chrome.get(f"{url}/inspector/")
    while not chrome.execute_script("return document.getElementById('number').textContent"):
        time.sleep(0.1)
    chrome.execute_script(f"for (let step = 0; step < {STEPS}; step++) {BACK}")
    time.sleep(0.5)
    chrome.save_screenshot(str(PICTURE))


if __name__ == "__main__":
    main()
