"""The command line: `palace`. Talk on stderr, results on stdout; heavy libraries load with the command that needs them."""

from palace_pipeline.cli.app import main

__all__ = ["main"]
