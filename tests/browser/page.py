"""The inspector's page as a user has it."""

from __future__ import annotations

import json
from typing import Any

from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

SET = """
const box = document.getElementById(arguments[0]);
box.value = arguments[1];
box.dispatchEvent(new Event("input", { bubbles: true }));
"""


class InspectorPage:
    """Opened, with the example that it begins with."""

    def __init__(self, chrome: Chrome, base_url: str, *, width: int = 1280, height: int = 900) -> None:
        self.chrome = chrome
        chrome.get_log("browser")
        chrome.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        chrome.get(base_url.removesuffix("/").removesuffix("/v1") + "/inspector")

    def ready(self) -> InspectorPage:
        """Waits for the example's reading."""
        self.wait(lambda: self.text("number"))
        return self

    def element(self, id: str) -> WebElement:
        return self.chrome.find_element(By.ID, id)

    def text(self, id: str) -> str:
        return str(self.chrome.execute_script("return document.getElementById(arguments[0]).textContent", id))

    def value(self, id: str) -> str:
        return str(self.chrome.execute_script("return document.getElementById(arguments[0]).value", id))

    def wait(self, fact: Any, seconds: float = 60) -> Any:
        return WebDriverWait(self.chrome, seconds, poll_frequency=0.05).until(lambda _: fact())

    def put(self, id: str, text: str) -> None:
        """Paste into a field. Waits for nothing."""
        self.chrome.execute_script(SET, id, text)

    def choose(self, id: str, value: str) -> None:
        Select(self.element(id)).select_by_value(value)

    def keys(self, *keys: str) -> None:
        """To whatever has the focus."""
        self.chrome.switch_to.active_element.send_keys(*keys)

    def ask(self, tools: Any, text: str, *, seconds: float = 60, **choices: str) -> None:
        """A question, and its answer: a reading or an error."""
        self.chrome.execute_script(
            "document.getElementById('number').textContent = ''; document.getElementById('error').hidden = true"
        )
        self.chrome.execute_script(
            "document.getElementById('tools').value = arguments[0];"
            "for (const [id, value] of Object.entries(arguments[1])) document.getElementById(id).value = value",
            tools if isinstance(tools, str) else json.dumps(tools),
            choices,
        )
        self.put("text", text)
        self.wait(lambda: self.text("number") or self.error(), seconds)

    def error(self) -> str:
        """The error that is shown, or ""."""
        box = self.element("error")
        return box.text if box.is_displayed() else ""

    def place(self) -> tuple[int, int]:
        """Which step of how many."""
        step, _, count = self.text("number").partition(" of ")
        return int(step), int(count)

    def troubles(self) -> list[str]:
        """What the browser has to complain of; answers with an error status are none."""
        return [
            entry["message"]
            for entry in self.chrome.get_log("browser")
            if "Failed to load resource" not in entry["message"]
        ]


HOME, END, LEFT, RIGHT = Keys.HOME, Keys.END, Keys.ARROW_LEFT, Keys.ARROW_RIGHT
