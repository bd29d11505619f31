"""The command in this process, as in its own tests."""

from tests.cli.conftest import say, say_json

__all__ = ["say", "say_json"]
