"""``python -m microfiche``: the command line."""

from microfiche.cli import main

if __name__ == "__main__":
    main(prog_name="microfiche")
