"""Run every function of the samples as a user does, and see that each report is valid: `python tools/every_sample.py`.

With words, only the functions whose names hold one of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from jsonschema import Draft202012Validator
from shardscope.samples.catalogue import samples

SCHEMA = Path(__file__).parents[1] / "docs" / "report.schema.json"


def main() -> int:
    """Prints a line for each function and how many there were; 1 if any failed."""
    validator = Draft202012Validator(json.loads(SCHEMA.read_text()))
    every = [f"{sample.name}:{function}" for sample in samples() for function in sample.functions]
    wanted = [name for name in every if not sys.argv[1:] or any(word in name for word in sys.argv[1:])]
    good = 0
    version = ""
    for name in wanted:
        command = [sys.executable, "-m", "shardscope", "run", name, "--format", "json"]
        done = subprocess.run(command, capture_output=True, check=False)
        problem = f"exit {done.returncode}: {done.stderr.decode()[-300:]}" if done.returncode else ""
        if not problem:
            document = json.loads(done.stdout)
            version = document["subject"]["jax"]
            problem = next((error.message for error in validator.iter_errors(document)), "")
            problem = problem or ("" if document["execution"]["ran"] else "was not run")
        good += not problem
        print(f"{name:50} {problem or 'ok'}", flush=True)
    print(f"{good} of {len(wanted)} with JAX {version}")
    return good != len(wanted)


if __name__ == "__main__":
    sys.exit(main())
