"""Whether pairs of texts are one attribute to MLIR; a child process of `tools/suites.py`.

Reads lines of JSON, [text, text], and answers each with `true` or `false`.
"""

import json
import sys

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir

for line in sys.stdin:
    with make_ir_context():
        try:
            first, second = map(ir.Attribute.parse, json.loads(line))
        except Exception:
            print("false", flush=True)
        else:
            print(json.dumps(first == second), flush=True)
