#!/usr/bin/env python3
"""Each place in a text of src/ has a value of its name beside it, and each value a place
(core/metric/filled.hpp). A cause's sentence needs no look: core/metric/causes.hpp does not
compile with a name that the cause does not have.
  tests/structure/templates.py FILE..."""
import re
import sys

literal = re.compile(r'"(?:\\.|[^"\\])*"')
character = re.compile(r"'(?:\\.|[^'\\])'")
place = re.compile(r'\{([a-z_][a-z0-9_]*)(?::(?:[txmcs0]|\.\d[gf]%?)|\?[^{}]*)?\}')
apart = {'verdicts_key'}  # texts with a name of their own, beside which no value stands
others = {'model', 'n', 'port', 'session', 'url'}  # places in the texts of users and of APIs


def skipped(code, at):
    """The end of a literal, a character or a comment at this place, else the place."""
    for what in (literal, character):
        found = what.match(code, at)
        if found:
            return found.end()
    return code.find('\n', at) if code.startswith('//', at) else at


def parts(code, at):
    """The elements of a list that opens here, and its end."""
    all_parts, depth, begin, k = [], 0, at + 1, at
    while True:
        end = skipped(code, k)
        if end > k:
            k = end
            continue
        if code[k] in '([{':
            depth += 1
        if code[k] in ')]}':
            depth -= 1
        if depth == 0 or (depth == 1 and code[k] == ','):
            all_parts.append(code[begin:k].strip())
            begin = k + 1
        k += 1
        if depth == 0:
            return [p for p in all_parts if p], k


def texts(code):
    """Adjacent literals as one text, with begin and end; those of comments are none."""
    k = 0
    while k < len(code):
        found = literal.match(code, k)
        if not found:
            k = max(skipped(code, k), k + 1)
            continue
        begin, text = k, ''
        while found:
            text += found.group()[1:-1]
            k = found.end()
            found = literal.match(code, k + len(code[k:]) - len(code[k:].lstrip()))
        yield begin, k, text


def faults(code):
    alike = []  # texts of a condition, which have one list of values
    for begin, end, text in texts(code):
        places = set(place.findall(text))
        named = re.search(r'(\w+) =\s*$', code[:begin])
        if not places or (named and named.group(1) in apart):
            continue
        alike.append((begin, places))
        behind = re.compile(r'\s*:\s*"').match(code, end)
        if behind:
            continue
        values = re.compile(r'\s*,\s*(?=\{)').match(code, end)
        if not values and places <= others:
            alike = []
            continue
        if not values:
            yield begin, f'no values stand beside {sorted(places)}'
        else:
            names = [re.match(r'\{\s*"(\w+)"', p) for p in parts(code, values.end())[0]]
            names = {n.group(1) if n else '' for n in names}
            for at, of in alike:
                if of - names:
                    yield at, f'no value has the name {sorted(of - names)}'
            if names - set().union(*(of for _, of in alike)):
                yield begin, f'no place has the name {sorted(names - places)}'
        alike = []


bad = False
for name in sys.argv[1:]:
    if name.endswith('metric/causes.hpp'):
        continue
    with open(name, encoding='utf-8') as f:
        source = f.read()
    for at, why in faults(source):
        print(f'{name}:{source.count(chr(10), 0, at) + 1}: {why}')
        bad = True
sys.exit(bad)
