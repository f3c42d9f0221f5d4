"""Whether pairs of texts are one attribute to MLIR; a child process of `tools/suites.py`.

Reads lines of JSON, [text, text], and answers each with `true` or `false`.
"""

import json
import sys

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir

for line in sys.stdin:
    with make_ir_context():
        ours, theirs = json.loads(line)
        try:
            # What MLIR prints it need not be able to read.
            first = ir.Attribute.parse(ours)
            same = str(first) == theirs or first == ir.Attribute.parse(theirs)
        except Exception:
            same = False
        print(json.dumps(same), flush=True)
