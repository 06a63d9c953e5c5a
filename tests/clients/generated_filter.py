"""generated_filter.py WORD... <DOCUMENT >FILTERED: leaves out what a generator has no words for.

deep-objects: query parameters that are an object with any names in it (`metadata[name]=value`).
no-content: the 204 beside a stream of events, where only one kind of success is known.
"""

import json
import sys

document = json.load(sys.stdin)
for methods in document["paths"].values():
    for operation in methods.values():
        if "deep-objects" in sys.argv and "parameters" in operation:
            operation["parameters"] = [one for one in operation["parameters"] if one.get("style") != "deepObject"]
        responses = operation["responses"]
        if "no-content" in sys.argv and "text/event-stream" in responses.get("200", {}).get("content", {}):
            del responses["204"]
json.dump(document, sys.stdout)
