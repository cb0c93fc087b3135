"""Run tinychat as `python -m tinychat`."""

from tinychat.cli import main

if __name__ == "__main__":
    main()
