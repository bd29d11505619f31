"""`python -m optimist`."""

from optimist.cli.main import main

main()
