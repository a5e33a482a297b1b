"""A WebSocket to a program on this machine: text messages, as RFC 6455 has them."""

from __future__ import annotations

import base64
import itertools
import os
import socket
import struct

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class WebSocket:
    def __init__(self, port: int, path: str, timeout: float):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout)
        self._file = self._socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        lines = (
            f"GET {path} HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
        )
        self._socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        status = self._file.readline()
        if b" 101 " not in status:
            raise ConnectionError(f"no WebSocket: {status.decode(errors='replace').strip()}")
        while self._file.readline().strip():
            pass

    def send(self, text: str) -> None:
        self._send(TEXT, text.encode())

    def _send(self, kind: int, data: bytes) -> None:
        size = len(data)
        if size < 126:
            head = struct.pack("!BB", 0x80 | kind, 0x80 | size)
        elif size < 2**16:
            head = struct.pack("!BBH", 0x80 | kind, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | kind, 0x80 | 127, size)
        mask = bytes(x | 1 for x in os.urandom(4))  # Firefox takes a mask of zeros for none
        self._socket.sendall(head + mask + bytes(x ^ y for x, y in zip(data, itertools.cycle(mask), strict=False)))

    def receive(self) -> str:
        """The next message; other frames are answered."""
        message = b""
        while True:
            first, second = self._read(2)
            size = second & 127
            if size > 125:
                (size,) = struct.unpack("!H" if size == 126 else "!Q", self._read(2 if size == 126 else 8))
            data = self._read(size)
            kind = first & 15
            if kind == PING:
                self._send(PONG, data)
            elif kind == CLOSE:
                raise ConnectionError("the other side has closed the WebSocket")
            elif kind != PONG:
                message += data
                if first & 0x80:
                    return message.decode()

    def _read(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise ConnectionError("the WebSocket has ended")
        return data

    def close(self) -> None:
        self._file.close()
        self._socket.close()
