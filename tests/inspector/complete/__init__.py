"""Captures whose complete reports are approved: `captures.tar.xz`, and what is said of them."""
