"""The error of captures that cannot be read or made."""

from __future__ import annotations

from ...parsers.errors import ShardscopeError


class CaptureError(ShardscopeError):
    """An event, or a capture's file, that is not what it should be."""
