"""What the commands are built with stays with the commands."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import json, sys
before = set(sys.modules)
import microfiche
for name in microfiche.__all__:
    getattr(microfiche, name)
microfiche.read_back(microfiche.render("x", model="claude-opus-5"))
microfiche.compact([{"role": "user", "content": "x"}], model="claude-opus-5")
loaded = {name.split(".")[0] for name in set(sys.modules) - before}
print(json.dumps(sorted(loaded - sys.stdlib_module_names)))
"""


def test_the_library_loads_the_standard_library_and_itself_only() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == ["microfiche"]


COMMAND = """
import sys
from microfiche.cli import main
main(["models", "--explain", "claude-opus-5"], standalone_mode=False)
assert "microfiche.models" in sys.modules
print(*sorted({"microfiche.conversation", "microfiche.batch", "microfiche.views", "rich.progress"} & set(sys.modules)))
"""


def test_a_command_loads_nothing_of_the_others() -> None:
    done = subprocess.run([sys.executable, "-c", COMMAND], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == ""
