"""Tests of what exists inside Pyodide only."""
