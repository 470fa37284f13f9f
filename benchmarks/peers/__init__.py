"""The other engines, each behind the same few calls."""
