"""The command `cumulant`: list the families, run the demonstration, run the published experiments again.

Each command imports what it needs when it is called, so that `cumulant --version` answers at once.
"""

from cumulant.cli.app import app, main

__all__ = ["app", "main"]
