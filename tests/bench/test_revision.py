"""Which code a folder has."""

from __future__ import annotations

import subprocess

import pytest

import webrnn
from webrnn.bench.revision import OWN_PACKAGE, revision


@pytest.fixture
def package(tmp_path):
    made = tmp_path / "checkout" / "runtime" / "webrnn"
    (made / "_kernels").mkdir(parents=True)
    (made / "__init__.py").write_text("")
    (made / "_kernels" / "native.so").write_bytes(b"1")
    return made


def git(root, *arguments):
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(root), *who, *arguments], check=True, capture_output=True)


def committed(package):
    root = package.parents[1]
    (root / ".gitignore").write_text("_kernels/\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    return root


def test_a_checkout_has_a_commit_and_may_have_changes(package, monkeypatch):
    root = committed(package)
    monkeypatch.setenv("GIT_DIR", "elsewhere")
    clean = revision(package, "1.0")
    assert len(clean.commit) == 40
    assert not clean.dirty
    assert str(clean) == clean.commit[:10]
    (root / "notes.txt").write_text("no part of what runs")
    assert revision(package, "1.0") == clean
    (package / "new.py").write_text("x = 1\n")
    changed = revision(package, "1.0")
    assert changed.dirty
    assert str(changed) == f"{clean.commit[:10]} with changes"
    assert not changed.is_the_code_of(clean)


def test_what_is_no_checkout_has_a_version_and_digests(package, tmp_path):
    git(tmp_path, "init", "-q")  # a copy inside another checkout is not that one
    first = revision(package, "1.0")
    assert (first.commit, first.dirty, first.version) == ("", False, "1.0")
    assert str(first) == f"version 1.0, Python {first.python[:10]}"
    (package / "_kernels" / "native.so").write_bytes(b"2")
    second = revision(package, "1.0")
    assert second.python == first.python
    assert second.kernels != first.kernels
    assert not second.is_the_code_of(first)


def test_without_git(package, monkeypatch):
    committed(package)
    monkeypatch.setenv("PATH", "")
    assert revision(package, "1.0").commit == ""


def test_our_own():
    assert revision() == revision(OWN_PACKAGE, webrnn.__version__)
    assert revision().as_data().keys() == {"version", "commit", "dirty", "python", "kernels"}
