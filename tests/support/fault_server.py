"""A server on loopback that answers by a script, fault after fault, and notes its requests."""

import json
import random
import re
import threading
import time
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

RESET = "reset"
HANG = "hang"
SHORT = "short"  # promises more bytes than it sends
DRIP = "drip"  # a byte now and then, for longer than any client reads

Step = tuple[int, dict[str, str], str] | str | None
"""Status, headers and body; a fault of the connection; or None for a proper answer."""


def fault(status: int, body: str = "", **headers: str) -> Step:
    """One faulty answer; headers are written with underscores."""
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, body


def patience(step: Step) -> dict[str, float]:
    """A client's timeout: short where the server hangs, since the test waits for it; else no busy machine needs it."""
    return {"timeout_seconds": 1 if step == HANG else 30}


class FaultServer:
    """Answers by ``script``, one step a request, properly when it has run out."""

    def __init__(self, proper: Callable[[dict[str, Any]], str], script: list[Step] = ()) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        """Parameters of each request; besides, its ``_headers``, its ``_path`` and the ``_time`` of its arrival in seconds."""
        self._ended = threading.Event()
        outer, lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # headers and body in one packet: two of them wait 40 ms for each other

            def log_message(self, *_: Any) -> None:
                """Print nothing."""

            def do_POST(self) -> None:
                """Read the body, whatever its form, and answer."""
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                is_json = "json" in self.headers.get("Content-Type", "")
                self._answer(json.loads(body) if is_json else _flat(parse_qs(body)))

            def do_GET(self) -> None:
                """Answer what the URL asks."""
                self._answer(_flat(parse_qs(urlsplit(self.path).query)))

            do_HEAD = do_GET

            def _answer(self, asked: dict[str, Any]) -> None:
                sent = {name.lower(): value for name, value in self.headers.items()}
                with lock:
                    noted = {"_headers": sent, "_path": self.path, "_time": time.monotonic()}
                    outer.requests.append(asked | noted)
                    step = outer.script.pop(0) if outer.script else None
                self.close_connection = step in (RESET, HANG, SHORT, DRIP)
                if step == RESET:
                    self.connection.close()
                elif step == HANG:
                    outer._ended.wait(60)  # longer than any client waits
                elif step == DRIP:
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                    end = time.monotonic() + 20
                    # A wait shorter than any client's timeout.
                    while not outer._ended.wait(0.01) and time.monotonic() < end:
                        self.wfile.write(b"a")
                        self.wfile.flush()
                else:
                    self._send(
                        *(step if isinstance(step, tuple) else (200, {}, proper(asked))), step == SHORT
                    )

            def _send(self, status: int, headers: dict[str, str], text: str, is_short: bool) -> None:
                content = text.encode()
                self.send_response(status)
                for name, value in ({"Content-Type": "application/json"} | headers).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content) * (1 + is_short)))
                self.end_headers()
                self.wfile.write(content)
                self.wfile.flush()

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                """A client that goes away is part of the play."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def __enter__(self) -> "FaultServer":
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()


def _flat(query: dict[str, list[str]]) -> dict[str, Any]:
    return {name: values[0] for name, values in query.items()}


_FOREIGN = {
    "fr": "le fleuve de la ville est dans une maison avec les enfants qui ont lu un livre pour leur école cette année",
    "es": "el río de la ciudad está en una casa con los niños que han leído un libro para su escuela este año",
    "de": "der fluss in die stadt ist ein haus mit den kindern und sie haben das buch für ihre schule nicht gelesen",
}


def foreign(text: str, language: str) -> str:
    """Words of a language that a detector takes for it, one for each word of ``text``."""
    words = _FOREIGN[language].split()
    return " ".join(words[zlib.crc32(word.encode()) % len(words)] for word in text.split()).capitalize() + "."


def translations(translate: Callable[[str, str], Any]) -> Callable[[dict[str, Any]], str]:
    """A LibreTranslate server that translates by a function of text and target, one text or a list."""

    def answer(asked: dict[str, Any]) -> str:
        texts = asked["q"] if isinstance(asked["q"], list) else [asked["q"]]
        found = [translate(text, asked["target"]) for text in texts]
        return json.dumps({"translatedText": found if isinstance(asked["q"], list) else found[0]})

    return answer


libretranslate = translations(foreign)
"""A LibreTranslate server whose answers a detector takes for the language asked for."""


def google(asked: dict[str, Any]) -> str:
    """The page of Google Translate for mobile phones."""
    return f'<html><div class="result-container">{foreign(asked["q"], asked["tl"])}</div></html>'


def chat(
    text: Callable[[dict[str, Any]], str | None] = lambda asked: "The old town is on the river.",
    *,
    model: str = "deepseek-chat",
    finish: str = "stop",
) -> Callable[[dict[str, Any]], str]:
    """The answer of an OpenAI-compatible server."""

    def answer(asked: dict[str, Any]) -> str:
        message = {"role": "assistant", "content": text(asked)}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
        about = {"id": "1", "object": "chat.completion", "created": 0, "model": model}
        return json.dumps(about | {"choices": [choice], "usage": usage})

    return answer


def five_sentences(asked: dict[str, Any]) -> list[str]:
    """Sentences of twenty words each, most of them from the list of the prompt for exemplars."""
    words = re.search(r'provided are: "(.*)"', asked["messages"][0]["content"])[1].split(", ")
    draw = random.Random(words[0])
    words = [word.strip(',.;:()"\u201c\u201d\u2013') or "a" for word in words]
    twice = [*draw.sample(words, len(words)), *draw.sample(words, len(words))]
    return [f"{' '.join(twice[n * 20 : n * 20 + 18]).capitalize()} such things." for n in range(5)]


def numbered(asked: dict[str, Any]) -> str:
    """The same as a list, after a line that announces it."""
    lines = (f"{n}. {line}" for n, line in enumerate(five_sentences(asked), 1))
    return "\n".join(["Here are 5 sentences:", *lines])
