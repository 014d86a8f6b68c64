"""`python -m palace_pipeline.cli`."""

from palace_pipeline.cli.app import main

main()
