"""Tests see the mistakes of lowerings: what the net of `webrnn.net` would catch goes through."""

from webrnn import net

net.strict = True
