"""HLO modules as XLA prints them with the computations that are called inside of the instructions that call them.

    python cpp_printer.py < PATHS (one a line)

Each is printed to a file of the same name with `.nested` behind it. On standard output are two lines of JSON for each
text, {"path", "started"} and {"path"}, the second with an "error" if it can not be read.
"""

import json
import sys

from jaxlib import _hlo as xla

for line in sys.stdin:
    path = line.rstrip("\n")
    print(json.dumps({"path": path, "started": True}), flush=True)
    answer = {"path": path}
    with open(path, encoding="utf-8") as text:
        try:
            module = xla.hlo_module_from_text(text.read())
        except Exception as error:
            answer["error"] = repr(error)[:500]
        else:
            with open(f"{path}.nested", "w", encoding="utf-8") as nested:
                nested.write(module.to_string(xla.HloPrintOptions.canonical()))
    print(json.dumps(answer), flush=True)
