"""`python -m stormproof` is `stormproof`."""

from stormproof.cli import main

if __name__ == "__main__":
    main()
