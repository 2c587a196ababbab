"""Random expressions: mostly well typed ones, built along the types of the language."""

from __future__ import annotations

from hypothesis import strategies as st

SAMPLE_VALUES = {
    "subject": "orders.eu.new",
    "properties": {"n": "5", "tier": "gold"},
    "body": b'{"i":3,"f":2.5,"s":"a","t":true,"z":null,"l":[1,2],"m":{"a":1},"strs":["b","a"],'
    b'"items":[{"id":1,"tag":"x","on":true},{"id":2,"tag":"y","on":false}]}',
    "enqueued_at_ms": 1_700_000_000_123,
    "visible_at_ms": 1_700_003_600_000,
}

_INTS = ["0", "1", "-3", "7", "9223372036854775807", "body_size", "len(subject)", "0x1F"]
_FLOATS = ["0.5", "-2.5", "1e300", "0.0", "float(body_size)"]
_STRINGS = ['""', '"a"', '"é"', "subject", 'properties["tier"]', "subject_parts[0]", "`x`"]
_BOOLS = ["true", "false", '"tier" in properties', "body_json.t == true"]
_DYNAMIC = [
    f"body_json.{name}" for name in ("i", "f", "s", "t", "z", "l", "m", "q", "strs", "items")
]
_ARRAYS = ["[]", "[1, 2, 3]", '["a", "b"]', "subject_parts", "1..4", "[1, 2.5]", "[[1], [2]]"]
_DURATIONS = ["hours(1)", "seconds(-30)", "visible_at - enqueued_at", 'duration("1d")']
_TIMES = ["enqueued_at", "visible_at"]


def _joined(*parts: st.SearchStrategy[str] | str) -> st.SearchStrategy[str]:
    pieces = [st.just(part) if isinstance(part, str) else part for part in parts]
    return st.tuples(*pieces).map("".join)


def _expressions(inner: dict[str, st.SearchStrategy[str]]) -> dict[str, st.SearchStrategy[str]]:
    """One level around what there is, by type."""
    number = inner["int"] | inner["float"] | inner["any"]
    comparison = st.sampled_from([" < ", " <= ", " > ", " >= ", " == ", " != "])
    body = st.sampled_from(
        ["#", "# == #", "true", "# != 1", "#.id == 1", "#?.on == true", "len(#) > 0"]
    )
    predicate = st.sampled_from(["all", "any", "none", "one"])
    taking = st.sampled_from(["filter", "find", "findLast", "findIndex", "findLastIndex", "count"])
    array = inner["array"] | inner["any"]
    element = st.sampled_from(["#", "[#, #index]", "({a: #})", "string(#)", "# + #", "#acc"])
    conditional = [
        _joined("(", inner["bool"], " ? ", inner[kind], " : ", inner[kind], ")") for kind in inner
    ]
    return {
        "int": _joined("(", inner["int"], st.sampled_from([" + ", " - ", " * ", " % "]), inner["int"], ")")
        | _joined("bitand(", inner["int"], ", ", inner["int"], ")")
        | _joined("len(", array, ")")
        | conditional[0],
        "float": _joined("(", number, st.sampled_from([" / ", " ** ", " ^ "]), number, ")")
        | _joined(st.sampled_from(["abs", "ceil", "floor", "round"]), "(", inner["float"], ")"),
        "string": _joined("(", inner["string"], " + ", inner["string"], ")")
        | _joined(st.sampled_from(["upper", "lower", "trim", "toJSON", "string"]), "(", inner["string"], ")")
        | _joined(inner["string"], "[", inner["int"], ":", inner["int"], "]")
        | _joined("replace(", inner["string"], ", ", inner["string"], ", ", inner["string"], ")"),
        "bool": _joined("(", inner["int"], comparison, inner["int"], ")")
        | _joined("(", inner["any"], comparison, inner["any"], ")")
        | _joined("(", inner["string"], comparison, inner["string"], ")")
        | _joined("(", inner["duration"], comparison, inner["duration"], ")")
        | _joined("(", inner["bool"], st.sampled_from([" and ", " || ", " or ", " && "]), inner["bool"], ")")
        | _joined("(not ", inner["bool"], ")")
        | _joined("(", inner["int"], " < ", inner["int"], " <= ", inner["float"], ")")
        | _joined("(", inner["string"], st.sampled_from([" contains ", " startsWith ", " matches "]), inner["string"], ")")
        | _joined("(", inner["any"], " in ", array, ")")
        | _joined(predicate, "(", array, ", {", body, "})"),
        "any": _joined("(", inner["any"], " ?? ", inner["any"], ")")
        | _joined("[", inner["any"], ", ", inner["string"], "][", inner["int"], "]")
        | _joined(taking, "(", array, ", ", body, ")")
        | _joined(st.sampled_from(["first", "last", "min", "max", "sum"]), "(", array, ")")
        | _joined("reduce(", array, ", ", element, ")")
        | _joined("(let v = ", inner["any"], "; [v, v])")
        | _joined("({k: ", inner["any"], "}).k")
        | _joined("fromJSON(toJSON(", inner["any"], "))"),
        "array": _joined("map(", array, ", ", element, ")")
        | _joined(st.sampled_from(["reverse", "uniq", "sort", "flatten"]), "(", array, ")")
        | _joined("sortBy(", array, ", ", element, ")")
        | _joined("values(groupBy(", array, ", ", body, "))[0:1]")
        | _joined("[", inner["any"], ", ", inner["float"], "]"),
        "duration": _joined("(", inner["duration"], " + ", inner["duration"], ")")
        | _joined("(", inner["time"], " - ", inner["time"], ")")
        | _joined("(", inner["duration"], " * ", inner["int"], ")"),
        "time": _joined("(", inner["time"], " + ", inner["duration"], ")")
        | _joined(inner["time"], ".Truncate(", inner["duration"], ")"),
    }  # fmt: skip


def well_typed(depth: int = 3) -> st.SearchStrategy[str]:
    """Expressions that the static check nearly always accepts."""
    level: dict[str, st.SearchStrategy[str]] = {
        "int": st.sampled_from(_INTS),
        "float": st.sampled_from(_FLOATS),
        "string": st.sampled_from(_STRINGS),
        "bool": st.sampled_from(_BOOLS),
        "any": st.sampled_from(_DYNAMIC + _INTS + _STRINGS),
        "array": st.sampled_from(_ARRAYS),
        "duration": st.sampled_from(_DURATIONS),
        "time": st.sampled_from(_TIMES),
    }
    for _ in range(depth):
        deeper = _expressions(level)
        level = {kind: level[kind] | deeper[kind] for kind in level}
    return st.one_of(*level.values())


_PIECES = [
    "(", ")", "[", "]", "{", "}", ",", ";", ":", "::", ".", "..", "?.", "?", "??", "|", "||", "&&",
    "!", "==", "!=", "<", "<=", ">", ">=", "=", "+", "-", "*", "/", "%", "**", "^", "#", "#acc",
    "#index", "in", "not", "and", "or", "matches", "contains", "startsWith", "endsWith", "let",
    "if", "else", "true", "false", "nil", "x", "subject", "body_json", "subject_parts", "$env",
    "enqueued_at", "properties", "map", "filter", "reduce", "len", "sum", "all", "date", "hours",
    "sortBy", "groupBy", "1", "2.5", "0x", "1e", '"a"', "'b'", "`c`", 'b"d"', '"', "\\", "//", "/*",
    "*/", "\n", " ", "\t", "é", "\u2028", "\x00", "Hour", "_",
]  # fmt: skip


def soup() -> st.SearchStrategy[str]:
    """Tokens in any order, and any text at all."""
    tokens = st.lists(st.sampled_from(_PIECES), max_size=25).map(" ".join)
    glued = st.lists(st.sampled_from(_PIECES), max_size=25).map("".join)
    return tokens | glued | st.text(max_size=40)
