"""Prints the sections of a WebAssembly module, and its code size by crate, according to function names."""

import collections
import gzip
import re
import sys

SECTIONS = dict(enumerate("custom type import function table memory global export start elem code data".split()))
CRATES_SHOWN = 30


def number(data, at):
    """An unsigned LEB128 number, and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def sized(data, at):
    """Length-prefixed bytes, and the position after them."""
    length, at = number(data, at)
    return data[at : at + length], at + length


def sections(data):
    at = 8
    while at < len(data):
        kind = data[at]
        body, at = sized(data, at + 1)
        yield SECTIONS.get(kind, str(kind)), body


def imported_functions(body):
    count, at = number(body, 0)
    functions = 0
    for _ in range(count):
        _, at = sized(body, at)
        _, at = sized(body, at)
        kind = body[at]
        at += 1
        if kind == 0:  # a function: the index of its type
            functions += 1
            _, at = number(body, at)
        else:  # a table or a memory has limits, a global its mutability
            flags = body[at + 1 if kind == 1 else at]
            at += 2
            if kind != 3:
                at += 1 if kind == 1 else 0
                _, at = number(body, at - 1)
                if flags & 1:
                    _, at = number(body, at)
    return functions


def codes(body):
    count, at = number(body, 0)
    for _ in range(count):
        code, at = sized(body, at)
        yield code


def names(body):
    at = 0
    while at < len(body):
        kind = body[at]
        part, at = sized(body, at + 1)
        if kind == 1:
            count, place = number(part, 0)
            for _ in range(count):
                index, place = number(part, place)
                name, place = sized(part, place)
                yield index, name.decode(errors="replace")


def crate(name):
    """The crate of a mangled name: `_ZN4core3fmt…` and `_ZN50_$LT$core..fmt…` both belong to core."""
    path = re.sub(r"^_ZN\d+_?", "", name)
    path = re.sub(r"\$(LT|GT|RF|BP|u20|u7b|u7d|C|LP|RP|u5b|u5d)\$|^(&|mut |dyn )+", " ", path)
    return next(iter(re.findall(r"[A-Za-z]\w*", re.sub(r"\b(mut|dyn|const|impl)\b", " ", path))), "?")


def crate_of_first_part(name):
    match = re.match(r"_ZN(\d+)", name)
    if match is None:
        return crate(name)
    first = name[match.end() : match.end() + int(match[1])]
    return crate(first)


def main():
    data = open(sys.argv[1], "rb").read()
    imported, code, named = 0, [], {}
    for kind, body in sections(data):
        label = kind
        if kind == "custom":
            title, rest = sized(body, 0)
            label = f"custom {title.decode()}"
            if title == b"name":
                named = dict(names(body[rest:]))
        elif kind == "import":
            imported = imported_functions(body)
        elif kind == "code":
            code = list(codes(body))
        if len(body) > 10_000:
            print(f"{label:34} {len(body):9} bytes {len(gzip.compress(body, 9)):8} gzipped")
    crates = collections.defaultdict(list)
    for index, body in enumerate(code, imported):
        crates[crate_of_first_part(named.get(index, "?"))].append(body)
    print()
    for name, bodies in sorted(crates.items(), key=lambda item: -sum(map(len, item[1])))[:CRATES_SHOWN]:
        joined = b"".join(bodies)
        print(f"{name:34} {len(joined):9} bytes {len(gzip.compress(joined, 9)):8} gzipped {len(bodies):5} functions")


main()
