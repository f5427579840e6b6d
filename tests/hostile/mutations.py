"""Random changes to valid files: of bytes, of values of JSON, and of chat templates."""

import copy
import json
import re
import struct

NUMBERS = (0, 1, 127, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
SIGNS = (
    b"", b"\0", b"\xff", b"\n", b'"', b"\\u0000", b"\\ud800", b"{", b"[" * 40, b"<", b"&#0;", b"%s", b"\t",
    b",",
)  # fmt: skip
VALUES = (
    None, True, False, 0, 1, -1, 2, 0.5, 1e308, -1e308, 2**31, 2**63, 2**64, 10**400, float("nan"),
    float("inf"), "", "a", "\0", "\ud800", "[UNK]", "{{", "a" * 5000, "(a+)+$", "1", [], {}, [None], [[]],
    [0] * 100, ["a", "a"],
    {"type": "x"}, {"a": {"b": []}},
)  # fmt: skip
NESTED = "[" * 3000 + "]" * 3000
MARK = "\ue000"
FRAGMENTS = (
    "{{", "}}", "{%", "%}", "{#", "#}", "{% for m in messages %}", "{% endfor %}", "{% if x is defined %}",
    "{% endif %}", "{% set x = messages %}", "{% macro f(a) %}{{ f(a) }}{% endmacro %}{{ f(1) }}",
    "{{ messages * 999999999 }}", "{{ range(999999999) | list }}", "{{ 'x' | center(999999999) }}",
    "{{ raise_exception('no') }}", "{{ raise_exception(messages) }}", "{{ strftime_now('%Y' * 9999) }}",
    "{{ strftime_now(5) }}", "{{ messages | tojson(indent=99999999) }}", "{{ ''.__class__.__mro__ }}",
    "{{ cycler.__init__.__globals__ }}", "{{ namespace(x=1).x.y.z }}", "{{ lipsum(n=9999999) }}",
    "{{ 1 / 0 }}",
    "{{ (9 ** 9999) | string }}", "{{ 'a'.join(messages) }}", "{{ messages[99] }}",
    "{{ messages | map(attribute='content.x.y') | list }}", "{{ '%99999999s' % 'a' }}", "{% include 'x' %}",
    "{% extends 'x' %}", "{% import 'os' as os %}", "{{ dict(messages) }}", "{{ none() }}",
    "{{ loop.index }}",
    "{{ messages | sort(attribute='x') }}", "{{ messages | groupby('role') }}", "{% generation %}",
    "{% break %}",
    "{{ '\\ud800' }}", "{{ '\\x00' }}", "\ud800", "{{ messages | random }}", "{{ self }}", "{{ caller() }}",
    "{{ x | regex }}", "{{ x is even }}", "{{ -(2**63) }}", "{{ 'a' | indent(999999999) }}",
    "{{ 'a b' * 99 | wordwrap(1) }}", "{{ messages | batch(0) | list }}", "{{ messages | slice(0) | list }}",
    "{{ 1 | filesizeformat }}", "{{ 'x' | urlize }}", "{{ 'x' | xmlattr }}", "{% call f() %}{% endcall %}",
)  # fmt: skip


def start(rng, n):
    """A place in a file of ``n`` bytes, as often among the first bytes as among the others."""
    return min(int(n ** rng.random()), n - 1) if n > 1 and rng.random() < 0.5 else rng.randrange(max(n, 1))


def changed_bytes(content, rng):
    """Return a file with one to four changes of its bytes."""
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = start(rng, len(content))
        end = place + rng.choice((1, 2, 8, 100))
        match rng.randrange(8):
            case 0:
                content[place : place + 1] = bytes([rng.randrange(256)])
            case 1:
                layout = rng.choice(("<I", ">I", "<Q", ">H"))
                number = rng.choice(NUMBERS) % 256 ** struct.calcsize(layout)
                content[place : place + struct.calcsize(layout)] = struct.pack(layout, number)
            case 2:
                del content[place:]
            case 3:
                del content[place:end]
            case 4:
                content[place:place] = content[place:end] * rng.choice((1, 2, 1000))
            case 5:
                content[place:end] = rng.choice(SIGNS)
            case 6:
                content[place:place] = rng.choice(SIGNS) * rng.choice((1, 3, 1000))
            case 7:
                other = start(rng, len(content))
                content[place:end] = content[other : other + end - place]
    return bytes(content)


def places(value, path=()):
    """Yield the path of every value within a value of JSON."""
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*path, key))


def changed_json(content, rng):
    """Return a JSON file with one to three of its values replaced, changed, taken out, moved or renamed."""
    value = [json.loads(content)]
    for _ in range(rng.choice((1, 1, 2, 3))):
        found = [path for path in places(value) if path]
        # Values far within, of long lists above all, do not outnumber the others.
        near = [path for path in found if len(path) < 4]
        *above, last = rng.choice(rng.choice((near, found)))
        inner = at(value, above)
        match rng.randrange(8):
            case 0 if isinstance(inner, dict):
                del inner[last]
            case 1 if isinstance(inner, dict):
                inner[rng.choice(("a", "", last * 2))] = inner.pop(last)
            case 2:
                inner[last] = copy.deepcopy(at(value, rng.choice(found)))
            case 3 if rng.random() < 0.2:
                inner[last] = MARK
            case 3 | 4 | 5:
                inner[last] = copy.deepcopy(changed_value(inner[last], rng))
            case _:
                inner[last] = copy.deepcopy(rng.choice(VALUES))
    return json.dumps(value[0] if value else None).replace(json.dumps(MARK), NESTED).encode()


def at(value, path):
    """Return the value at a path within a value of JSON."""
    for key in path:
        value = value[key]
    return value


def changed_value(value, rng):
    """Return another value of the same type."""
    match value:
        case bool():
            return not value
        case int() | float():
            return rng.choice((value + 1, value - 1, -value, value * 2, value * 10**9, value // 2))
        case str():
            return changed_bytes(value.encode("utf-8", "surrogatepass"), rng).decode("utf-8", "replace")
        case list():
            return rng.choice((value * 2, value[1:], value[::-1], [value]))
        case dict():
            return dict(rng.sample(list(value.items()), len(value) // 2))
    return value


def changed_template(template, rng):
    """Return a chat template with fragments of others put in, and blocks taken out or moved."""
    blocks = re.split(r"(\{%.*?%\}|\{\{.*?\}\})", template)
    for _ in range(rng.choice((1, 1, 2, 3))):
        place = rng.randrange(len(blocks))
        match rng.randrange(6):
            case 0:
                del blocks[place]
            case 1:
                blocks[place] = blocks[rng.randrange(len(blocks))]
            case 2:
                blocks[place] = changed_bytes(blocks[place].encode(), rng).decode("utf-8", "replace")
            case _:
                blocks.insert(place, rng.choice(FRAGMENTS))
        blocks = blocks or [""]
    return "".join(blocks)
