import io

from webrnn.corpora import progress
from webrnn.corpora.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def told(stream, monkeypatch, show=True):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    shown = Progress(show, stream)
    shown.total = 100
    for done in range(0, 101, 10):
        now[0] += 3
        shown.tell(done, 2, 0)
    shown.end()
    return stream.getvalue()


def test_a_terminal_has_a_bar(monkeypatch):
    drawn = told(Terminal(), monkeypatch).split("\r\x1b[K")
    assert drawn[6] == "[############............]  50%  50 of 100  2.8 a second  0:18 left  2 bad"
    assert drawn[-1] == ""


def test_elsewhere_there_are_few_lines(monkeypatch):
    lines = told(io.StringIO(), monkeypatch).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("webrnn map: [")


def test_quiet(monkeypatch):
    assert told(Terminal(), monkeypatch, show=False) == ""


def test_items_are_counted_beside_the_work():
    shown = Progress(True, io.StringIO())
    shown.count(iter(range(1234)))
    for _ in range(1000):
        if shown.total is not None:
            break
        progress.time.sleep(0.01)
    assert shown.total == 1234
