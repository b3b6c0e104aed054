#!/usr/bin/env python3
"""Writes ../chat_golden.json: what Jinja2, set up as transformers sets it up, makes of our templates and of small ones.

Needs jinja2 (3.1). Run in any folder: python3 make_chat_golden.py
"""
import copy
import datetime
import json
import pathlib

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = pathlib.Path(__file__).resolve().parent
NOW = 1722686706  # 2024-08-03 12:05:06 UTC


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_keep"), [], [], body).set_lineno(lineno)

    def _keep(self, caller):
        return caller()


def make_environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, "jinja2.ext.loopcontrols"])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda f: datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).strftime(f)
    return env


TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "look up the \"weather\" of a place\nsecond line",
        "parameters": {"type": "object", "properties": {
            "place": {"type": "string", "description": "Ort, z. B. Köln"},
            "days": {"type": ["integer", "string"]},
            "detail": {"type": "array", "items": {"type": "number"}},
            "extra": {"type": "object", "additionalProperties": {"type": "boolean"}}},
            "required": ["place"]}}},
    {"type": "function", "function": {
        "name": "stop", "parameters": {"type": "object", "properties": {}, "required": []}, "strict": True, "limit": 2.5}},
]
CALL = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "abcdefghi", "type": "function", "function": {"name": "get_weather", "arguments": {"place": "Köln", "days": 3}}}]}
CONVERSATIONS = {
    "one": dict(messages=[{"role": "user", "content": "  Hello there!\n"}]),
    "no_prompt": dict(messages=[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hey 👋"}],
                      add_generation_prompt=False),
    "system": dict(messages=[{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Warum ist der Himmel blau?"},
                             {"role": "assistant", "content": "<think>\nRayleigh\n</think>\n\nStreuung."},
                             {"role": "user", "content": "日本語で {{ role }} {% x %}"}]),
    "tools": dict(messages=[{"role": "user", "content": "Weather?"}, CALL,
                            {"role": "tool", "tool_call_id": "abcdefghi", "content": "{\"temp\": 11.5}"},
                            {"role": "assistant", "content": "11.5 °C"}, {"role": "user", "content": "Thanks <b>&"}], tools=TOOLS),
    "tools_system": dict(messages=[{"role": "system", "content": "Use tools."}, {"role": "user", "content": "Weather?"}, CALL,
                                   {"role": "tool", "tool_call_id": "abcdefghi", "content": "sunny"},
                                   {"role": "tool", "tool_call_id": "abcdefghi", "content": "warm"}],
                         tools=TOOLS, extra={"tools_in_user_message": False, "enable_thinking": False}),
    "parts": dict(messages=[{"role": "user", "content": [{"type": "text", "text": " look "}, {"type": "image"},
                                                         {"type": "text", "text": "here"}]}]),
    "order": dict(messages=[{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]),
    "reasoning": dict(messages=[{"role": "user", "content": "2+2"},
                                {"role": "assistant", "content": "4", "reasoning_content": "\neasy\n"}], add_generation_prompt=False),
}

# Small templates; `v` holds values of every kind.
V = {"i": 7, "n": -3, "f": 2.5, "big": 1e20, "tiny": 1.5e-7, "s": "Hello World", "e": "", "u": "äß日𝄞é", "none": None, "t": True,
     "l": [3, 1, 2], "w": ["b", "A", "c", "a"], "d": {"b": 1, "a": [1, {"x": None}], "Z": "q"}, "ll": [[1, 2], [3, 4]],
     "users": [{"name": "bob", "age": 30, "tag": {"k": 1}}, {"name": "Al", "age": 25, "tag": {"k": 2}}, {"name": "cy", "age": 30}],
     "html": "<a href='x'>\"&\"</a>", "ml": "one\ntwo\n\nthree\n", "ws": " \t x y \n"}
SMALL = r"""
{{ v.i + 2 }} {{ v.i - 2 }} {{ v.i * 2 }} {{ v.i / 2 }} {{ v.i // 2 }} {{ v.i % 4 }} {{ v.i ** 2 }} {{ v.n // 2 }} {{ v.n % 5 }} {{ -v.i }} {{ +v.i }} {{ 2 ** -1 }}
{{ v.f + 1 }} {{ v.f // 1 }} {{ v.f % 2 }} {{ -7.5 // 2 }} {{ -7.5 % 2 }} {{ 1e3 }} {{ 1.0 }} {{ 10 / 5 }} {{ v.big }} {{ v.tiny }} {{ 0.1 + 0.2 }} {{ 1e16 }} {{ 123456789012345.0 }} {{ 1_000 }} {{ 1e-4 }} {{ 1e-5 }}
{{ v.s ~ v.i ~ v.none ~ v.t ~ v.f }} {{ 1 ~ 2 * 3 }} {{ 'a' + 'b' * 3 }} {{ [1] + [2] }} {{ (1,) + (2, 3) }} {{ [0] * 3 }} {{ 'x' * 0 }}
{{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ '1' == 1 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 2 >= 2 }} {{ 2 != 3 }} {{ 'é' > 'z' }}
{{ 1 in [1, 2] }} {{ 3 not in v.l }} {{ 'ell' in v.s }} {{ 'b' in v.d }} {{ 'x' in v.nothing }} {{ not 1 in [2] }} {{ 1 if v.e else 2 }} {{ 'x' if false }}|
{{ true and 'a' or 'b' }} {{ false or none }} {{ '' or 'x' }} {{ not '' }} {{ 0 and 1 }} {{ (1 or 2) and 3 }}
{{ [1, 'a', none, true, 2.0, "it's", 'q"q', "both'\""] }} {{ (1,) }} {{ () }} {{ {} }} {{ {'a': 1, 2: [3]} }} {{ [] }} {{ ['\n\t\\', 'é', '\x01', '\u200b'] }}
{{ v.l[0] }} {{ v.l[-1] }} {{ v.l[9] }}| {{ v['s'] }} {{ v.s[1] }} {{ v.s[-1] }} {{ v.u[2] }} {{ v.u[9] }}| {{ v.ll.0.1 }} {{ v.ll[1].0 }}
{{ v.l[1:] }} {{ v.l[:-1] }} {{ v.l[::-1] }} {{ v.l[::2] }} {{ v.s[2:5] }} {{ v.s[::-1] }} {{ v.u[1:3] }} {{ v.l[5:] }} {{ v.s[-3:] }} {{ v.s[:-20] }}| {{ v.s[10:2:-3] }} {{ (1,2,3)[1:] }} {{ v.l[none:2] }}
{{ v.s.upper() }} {{ v.s.lower() }} {{ v.u.upper() }} {{ v.s.title() }} {{ 'hello wORLD'.capitalize() }} {{ "they're x-y".title() }} {{ v.s.swapcase() }}
{{ v.ws.strip() }}| {{ v.ws.lstrip() }}| {{ v.ws.rstrip() }}| {{ 'xxaxx'.strip('x') }} {{ 'abcab'.rstrip('ab') }} {{ 'abc'.lstrip('ba') }} {{ ''.strip() }}|
{{ 'a,b,,c'.split(',') }} {{ ' a  b c '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'a b c'.split(none, 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ 'a b  c '.rsplit(none, 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a--b'.split('--')[-1] }} {{ v.ml.splitlines() }} {{ v.ml.splitlines(true) }} {{ 'a b'.split(maxsplit=1) }}
{{ v.s.startswith('Hell') }} {{ v.s.endswith(('x', 'ld')) }} {{ v.s.find('o') }} {{ v.s.find('o', 5) }} {{ v.s.find('zz') }} {{ v.s.rfind('o') }} {{ v.s.index('W') }} {{ v.s.count('l') }} {{ v.u.find('é') }} {{ 'aaaa'.count('aa') }} {{ 'abc'.find('c', -2) }} {{ 'abc'.find('') }} {{ 'abc'.count('') }}
{{ v.s.replace('l', 'L') }} {{ v.s.replace('l', 'L', 1) }} {{ 'ab'.replace('', '-') }} {{ '-'.join(['a', 'b']) }} {{ 'abc'.removeprefix('a') }} {{ 'abc'.removesuffix('c') }} {{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('x') }}
{{ 'ab'.ljust(4) }}| {{ 'ab'.rjust(4, '.') }} {{ '-42'.zfill(6) }} {{ '12'.isdigit() }} {{ 'a1'.isalnum() }} {{ 'ab'.isalpha() }} {{ ' '.isspace() }} {{ 'AB1'.isupper() }} {{ 'ab'.islower() }} {{ ''.isdigit() }} {{ '{} and {}'.format(1, 'x') }} {{ '{1}{0}'.format('a', 'b') }} {{ '{n}'.format(n=3) }}
{{ v.d.items() | list }} {{ v.d.keys() | list }} {{ v.d.values() | list }} {{ v.d.get('a') }} {{ v.d.get('zz') }} {{ v.d.get('zz', 5) }} {{ v.d | length }} {{ v.d.b }} {{ v.d['nope'] }}| {{ v.d.nope is defined }} {{ v.d | items | list }}
{{ v.d }} {{ v.d | tojson }} {{ v.d | tojson(indent=2) }} {{ [] | tojson(indent=2) }} {{ 'é"\n' | tojson }} {{ v.f | tojson }} {{ none | tojson }} {{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }} {{ 'é𝄞' | tojson(ensure_ascii=true) }} {{ [1,2] | tojson(separators=(',', ':')) }} {{ (1, 2) | tojson }} {{ {1: 2, none: 3, true: 4} | tojson }}
{{ v.l | sort }} {{ v.w | sort }} {{ v.w | sort(reverse=true) }} {{ v.w | sort(case_sensitive=true) }} {{ v.users | sort(attribute='age') | map(attribute='name') | list }} {{ v.users | sort(attribute='age,name') | map(attribute='name') | join(',') }} {{ v.d | dictsort }} {{ {'a': 2, 'b': 1} | dictsort(by='value') }}
{{ v.l | join }} {{ v.l | join(', ') }} {{ v.users | join('|', attribute='name') }} {{ v.l | first }} {{ v.l | last }} {{ v.s | first }} {{ [] | first }}| {{ v.l | length }} {{ v.u | length }} {{ v.u | count }} {{ v.l | sum }} {{ v.users | sum(attribute='age') }} {{ v.l | min }} {{ v.l | max }} {{ v.w | max }} {{ v.l | reverse | list }} {{ v.s | reverse }} {{ v.u | list }}
{{ v.users | map(attribute='tag.k', default=0) | list }} {{ v.w | map('upper') | list }} {{ v.l | map('string') | join }} {{ ['1', '2'] | map('int') | sum }} {{ v.users | selectattr('age', 'equalto', 30) | map(attribute='name') | list }} {{ v.users | rejectattr('tag') | list }} {{ v.users | selectattr('tag', 'defined') | list | length }} {{ v.l | select('gt', 1) | list }} {{ v.l | reject('odd') | list }} {{ [0, 1, '', 'x'] | select | list }} {{ v.users | selectattr('name', 'in', ['bob', 'cy']) | list | count }}
{{ [1, 2, 1, 3] | unique | list }} {{ ['a', 'A'] | unique | list }} {{ range(7) | batch(3) | list }} {{ [1, 2, 3] | batch(2, 0) | list }} {{ range(3) | list }} {{ range(2, 8, 3) | list }} {{ range(3, 0, -1) | list }} {{ dict(a=1, b='x') }}
{{ v.none | default('d') }} {{ v.nope | default('d') }} {{ v.e | default('d', true) }} {{ v.nope | d }}| {{ v.nope | default(value='x') if false else 'y' }} {{ v.none | default('d', boolean=true) }} {{ nope | default([]) | length }}
{{ 'abc' | upper }} {{ 'ABC' | lower }} {{ 'hello big-world (x' | title }} {{ 'hELLO' | capitalize }} {{ v.ws | trim }}| {{ 'xax' | trim('x') }} {{ v.html | e }} {{ v.html | escape | length }} {{ v.html | safe }} {{ 42 | string + '!' }} {{ 'a-b' | replace('-', '+') }} {{ 'aaa' | replace('a', 'b', 2) }}
{{ v.ml | indent }}| {{ v.ml | indent(2, true) }}| {{ v.ml | indent(2, blank=true) }}| {{ 'a\nb' | indent('> ') }}| {{ 'a' | indent(2, first=true) }}
{{ '12' | int }} {{ 'x' | int }} {{ 'x' | int(9) }} {{ '3.7' | int }} {{ 3.9 | int }} {{ -3.9 | int }} {{ 'ff' | int(0, 16) }} {{ '2.5' | float }} {{ 'x' | float }} {{ true | int }} {{ ' 5 ' | int }} {{ 2.567 | round(2) }} {{ 2.5 | round }} {{ 3.5 | round }} {{ 2.1 | round(0, 'ceil') }} {{ 7 | round }} {{ 1234.5 | round(-2) }} {{ -5 | abs }} {{ -2.5 | abs }}
{{ 'ab' | center(6) }}| {{ 'abc' | center(6) }}| {{ 'hello world foo bar' | truncate(12) }} {{ 'hello world foo bar' | truncate(12, true) }} {{ 'short' | truncate(4) }} {{ 'one two, three' | wordcount }} {{ '%s is %d and %.2f%%' | format('x', 3, 2.345) }} {{ '%05d|%-4s|%x' | format(42, 'a', 255) }} {{ 'a=%s' % 5 }} {{ '%s-%s' % ('a', 'b') }} {{ 'a b&c/é' | urlencode }}
{{ 1 is number }} {{ 'a' is string }} {{ v.d is mapping }} {{ v.l is iterable }} {{ 's' is iterable }} {{ 1 is iterable }} {{ v.l is sequence }} {{ none is none }} {{ v.none is none }} {{ nope is defined }} {{ nope is undefined }} {{ nope is not defined }} {{ true is true }} {{ 1 is true }} {{ false is false }} {{ true is boolean }} {{ 1 is integer }} {{ true is integer }} {{ 1.0 is float }} {{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 'ab' is lower }} {{ 'AB' is upper }} {{ 1 is eq 1 }} {{ 2 is gt(1) }} {{ 1 is in [1] }} {{ range is callable }} {{ 1 is sameas 1 }} {{ v.d is sameas v.d }} {{ (1,2) is sequence }} {{ nope is iterable }} {{ 'x' is mapping }} {{ 1 is not string }} {{ not 1 is string }} {{ true is number }}
{{ 'a' 'b' "c" }} {{ 'it''s' }} {{ "tab\tnl\nq\"" }} {{ '\u00e9\x41\101' }} {{ 'back\\slash \d' }}
{% for x in v.l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }};{% endfor %}
{% for k, w in v.d.items() %}{{ k }}={{ w }};{% else %}none{% endfor %}{% for x in [] %}x{% else %}empty{% endfor %}{% for x in nope %}x{% else %}undef{% endfor %}{% for c in 'añb' %}{{ c }}.{% endfor %}{% for k in v.d %}{{ k }}{% endfor %}
{% for x in v.l if x > 1 %}{{ x }}{{ loop.index }}/{{ loop.length }} {% endfor %}{% for x in v.l if x > 9 %}{% else %}no{% endfor %}{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% for a in v.ll %}{% for b in a %}{{ loop.depth }}{{ b }}{% endfor %}{% endfor %}
{% for x in range(9) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set y = 5 %}{% endif %}{{ y }}{% for i in [1] %}{% set z = 1 %}{% endfor %}{{ z is defined }}
{% set ns = namespace(a=1, b=[]) %}{% for i in [1, 2, 3] %}{% set ns.a = ns.a + i %}{% set ns.b = ns.b + [i] %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c is defined }}{% set ns2 = namespace({'k': 1}) %}{{ ns2.k }}{{ ns2['k'] }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}{% set (d, e) = [3, 4] %}{{ d }}{{ e }}{% set q %}block {{ a }}{% endset %}{{ q }}|{% set r | upper | trim %} up {% endset %}{{ r }}|
{% macro m(a, b=2, c=a) %}[{{ a }},{{ b }},{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m('x') | upper }}{{ m() }}{% set f = m %}{{ f(9) }}
{% macro fact(n) %}{% if n <= 1 %}1{% else %}{{ n * (fact(n - 1) | int) }}{% endif %}{% endmacro %}{{ fact(10) }}{% macro va(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ va(1, 2, 3, k=4) }}
{% macro wrap(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call wrap('b') %}in{{ v.i }}{% endcall %}{% macro each(l) %}{% for x in l %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(x) each([1, 2]) %}({{ x }}){% endcall %}
{% macro outer() %}{{ glob }}{% endmacro %}{% set glob = 'late' %}{{ outer() }}{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}{% filter upper %}abc{{ v.i }}{% endfilter %}
{% if v.i > 5 %}gt{% elif v.i == 5 %}eq{% else %}lt{% endif %}{% if none %}a{% elif 0 %}b{% else %}c{% endif %}{% if v.l and not v.e %}yes{% endif %}
{# c #}a{#- c -#} b {#- d #} c{# multi
line #}d
{% raw %}{{ not }} {% parsed %}{% endraw %} {%- raw -%}  x  {%- endraw -%}  y
{{ {'a': {'b': {}}} }}{{ {'}}': 1}['}}'] }}{{ '%}' }}{% set s = '%}' %}{{ s }}
{{ strftime_now('%d %b %Y %H:%M:%S %A %j %-d %y %B %I %p %%') }}
{{ [1, 2, 3] | tojson }}{{ nope }}{{ v.nope }}{{ none }}{{ true }}{{ 1, 2 }}{{ v.s.nope }}|
{{ v.users[0].name }}{{ v.users[0]['tag']['k'] }}{{ v.users | map(attribute='name') | map('lower') | sort | join(',') }}{{ (v.users | first).name | upper }}{{ v['users'][1].get('age', 0) + 1 }}
{{ 'x' if v.i > 3 and v.f < 3 else 'y' }}{{ 'a' if false else 'b' if false else 'c' }}{{ (1 if true else 2) + 1 }}{{ -2 | abs }}{{ 2 + 3 | string | length }}{{ not false and true }}{{ (1 + 1) ~ 'x' }}{{ 10 - 2 - 3 }}{{ 2 ** 3 ** 2 }}{{ 7 // 2 * 2 }}
""".strip("\n")
# White space: whole texts, separated by lines of "---".
SPACES = """\
a
{% if true %}
  b
  {% endif %}
c
---
  {% set x = 1 %}
{{ x }}
  {{ x }}
---
a {%- if true -%} b {%- endif -%} c
---
a {%+ if true %} b {% endif +%}
c
---
{% for i in [1, 2] %}
    {{ i }}
    {%- if loop.first %}
      first
    {%- endif %}

{% endfor %}
end

---
x
{# comment #}
y {# c #}
z
   {#- c #} w
---
{{- 'a' -}}
 b
{{ 'c' }}
 d
---
\t{% if true %}\tb{% endif %}\t
c{% if true %}
{% endif %}

---
line\r
{% if true %}\r
x\r
{% endif %}\r
y
---
{{ 'a' }}{% if true %}

b
{% endif %}   {% if true %}c{% endif %}
---
a\u00a0{%- if true %}b{% endif %}
---
  {%- set a = 1 -%}
  x
  {%+ set b = 2 %}
  y
---
{% if true -%}
    x
{%- else -%}
    y
{%- endif %}
---
  {% raw %}
  {{ x }}
  {% endraw %}
  z
---
{% macro a() %}
  body
{% endmacro %}
{{ a() }}|{{- a() -}}|
---
text only
---
trailing newlines


""".replace("\\t", "\t").replace("\\r", "\r").split("---\n")
# Must fail when parsed or rendered.
BAD = r"""
{{ ''.__class__.__mro__[1].__subclasses__() }}
{{ v.l.append(4) }}
{{ v.d.update({'a': 1}) }}
{{ v.l.pop() }}
{{ nope.x }}
{{ nope + 1 }}
{{ 1 + 'a' }}
{{ 1 / 0 }}
{{ 5 % 0 }}
{{ 1 < 'a' }}
{{ v.none.x.y }}
{{ none[0] }}{{ nope() }}
{{ v.i() }}
{% for x in 5 %}{% endfor %}
{% for x in none %}{% endfor %}
{% for a, b in [[1]] %}{% endfor %}
{{ 'a' | nofilter }}
{{ 1 is notest }}
{{ raise_exception('no') }}
{% set v.i = 2 %}
{% if %}{% endif %}
{% if true %}
{% for x in [1] %}{{ x }
{{ 'abc }}
{{ 1 + }}
{{ (1 }}
{{ [1, }}
{{ a b }}
{% endif %}
{% else %}
{% unknown %}
{% include 'x' %}
{% set 1 = 2 %}
{% break %}
{{ range(100001) }}
{{ v.s.upper(1) }}
{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{% endmacro %}{{ m(b=2) }}
{{ {[1]: 2} }}
{{ 'x'.join([1]) }}
{{ 'a'.split('') }}
{{ nope | tojson }}
{{ v.l | sort(attribute='x') | first + 1 }}{{ [1, 'a'] | sort }}
{{ -'a' }}
{{ 'a' in 5 }}
{{ ''['__class__'].x }}
{{ ('' | attr('__class__')).x }}
{{ ([''] | map(attribute='__class__') | list)[0].x }}
{{ v.l is divisibleby 2 }}
{# open
{% raw %} x
{{ namespace.__init__.x }}
{{ m.__globals__ }}{% macro m() %}{% endmacro %}{{ m.__call__.x }}
{{ cycler.__init__.__globals__.os.popen('id').read() }}
{{ 'abc'.index('z') }}
{{ '%d' % 'x' }}
{{ v.users | selectattr('tag.k', 'defined') | list }}
{{ '%s %s' % 'x' }}
""".strip("\n")


def render(env, source, inputs):
    inputs = copy.deepcopy(inputs)  # Jinja2's indent changes a list that it is given
    variables = dict(messages=inputs.get("messages", []), tools=inputs.get("tools"), documents=None,
                     add_generation_prompt=inputs.get("add_generation_prompt", True), bos_token="<s>", eos_token="</s>")
    variables.update(inputs.get("extra", {}))
    try:
        return {"output": env.from_string(source).render(**variables)}
    except Exception as e:  # any of Jinja2's and Python's
        return {"error": type(e).__name__}


def main():
    env = make_environment()
    cases = []
    for path in sorted((HERE.parent / "templates").glob("*.jinja")):
        for name, conversation in CONVERSATIONS.items():
            cases.append({"name": f"{path.stem}/{name}", "file": path.name, "input": conversation,
                          **render(env, path.read_text(), conversation)})
    lists = (("small", [t for t in SMALL.split("\n")]), ("space", SPACES), ("bad", BAD.split("\n")))
    # One comment and one raw block run over two lines.
    small = "\n".join(lists[0][1]).replace("{# multi\nline #}d", "{# multi line #}d").split("\n")
    for kind, sources in (("small", small), lists[1], lists[2]):
        for i, source in enumerate(sources):
            inputs = {"extra": {"v": V}}
            result = render(env, source, inputs)
            assert ("error" in result) == (kind == "bad"), (source, result)
            cases.append({"name": f"{kind}/{i}", "template": source, "input": inputs, **result})
    for case in cases:
        if case["input"].get("extra", {}).get("v") is V:
            case["input"] = "v"
    out = {"now": NOW, "v": V, "cases": cases}
    (HERE.parent / "chat_golden.json").write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n")
    print(len(cases), "cases,", sum("error" in c for c in cases), "of them errors")


if __name__ == "__main__":
    main()
