"""Patterns of the values of `format` (draft 2020-12, validation, section 7.3), as ECMA-262 expressions.

A format that is not in JSON Schema is an annotation, as the standard says.
"""

from __future__ import annotations

_YEAR_MONTH_DAY = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    r"|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_OFFSET = r"(?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_FRACTION = r"(?:\.[0-9]+)?"


def _leap_seconds() -> str:
    """23:59:60 in UTC, written with any offset of whole hours or half hours, and with none."""
    times = [rf"23:59:60{_FRACTION}(?:[zZ]|[+-]00:00)"]
    for minutes in range(30, 24 * 60, 30):
        offset = f"{minutes // 60:02}:{minutes % 60:02}"
        for sign in (1, -1):
            local = (23 * 60 + 59 + sign * minutes) % (24 * 60)
            mark = r"\+" if sign > 0 else "-"
            times.append(rf"{local // 60:02}:{local % 60:02}:60{_FRACTION}{mark}{offset}")
    return "|".join(times)


_TIME = rf"(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]{_FRACTION}{_OFFSET}|{_leap_seconds()})"

_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = rf"(?:{_BYTE}\.){{3}}{_BYTE}"
_GROUP = r"[0-9a-fA-F]{1,4}"
_LAST = rf"(?:{_GROUP}:{_GROUP}|{_IPV4})"
_IPV6 = (
    rf"(?:(?:{_GROUP}:){{6}}{_LAST}|::(?:{_GROUP}:){{5}}{_LAST}|(?:{_GROUP})?::(?:{_GROUP}:){{4}}{_LAST}"
    rf"|(?:(?:{_GROUP}:){{0,1}}{_GROUP})?::(?:{_GROUP}:){{3}}{_LAST}"
    rf"|(?:(?:{_GROUP}:){{0,2}}{_GROUP})?::(?:{_GROUP}:){{2}}{_LAST}"
    rf"|(?:(?:{_GROUP}:){{0,3}}{_GROUP})?::{_GROUP}:{_LAST}"
    rf"|(?:(?:{_GROUP}:){{0,4}}{_GROUP})?::{_LAST}"
    rf"|(?:(?:{_GROUP}:){{0,5}}{_GROUP})?::{_GROUP}|(?:(?:{_GROUP}:){{0,6}}{_GROUP})?::)"
)
# A label with hyphens in its third and fourth place is an A-label, whose rules are beyond a grammar.
_LETTER, _INNER = "[a-zA-Z0-9]", "[a-zA-Z0-9-]"
_LABEL = (
    rf"{_LETTER}(?:{_LETTER}|{_INNER}{_LETTER}|{_INNER}{{2}}{_LETTER}"
    rf"|{_INNER}(?:{_LETTER}{_INNER}|-{_LETTER}){_INNER}{{0,58}}{_LETTER})?"
)
_HOSTNAME = rf"{_LABEL}(?:\.{_LABEL})*"
_ATOM = r"[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+"
_QUOTED = r'"(?:[ !#-\[\]-~]|\\[ -~])*"'
_EMAIL = (
    rf"(?:{_ATOM}(?:\.{_ATOM})*|{_QUOTED})@"
    rf"(?:{_LABEL}(?:\.{_LABEL})*|\[(?:{_IPV4}|IPv6:{_IPV6})\])"
)


def _uri(unreserved: str) -> tuple[str, str]:
    """URI and URI reference of RFC 3986 (IRI of RFC 3987 with its larger set of unreserved characters)."""
    encoded = r"%[0-9a-fA-F]{2}"
    character = rf"(?:[{unreserved}!$&'()*+,;=:@]|{encoded})"
    user = rf"(?:[{unreserved}!$&'()*+,;=:]|{encoded})*@"
    name = rf"(?:[{unreserved}!$&'()*+,;=]|{encoded})*"
    literal = rf"\[(?:{_IPV6}|[vV][0-9a-fA-F]+\.[a-zA-Z0-9._~!$&'()*+,;=:-]+)\]"
    authority = rf"(?:{user})?(?:{literal}|{name})(?::[0-9]*)?"
    empty_or_absolute = rf"(?:/{character}*)*"
    absolute = rf"/(?:{character}+(?:/{character}*)*)?"
    rootless = rf"{character}+(?:/{character}*)*"
    first_without_colon = rf"(?:[{unreserved}!$&'()*+,;=@]|{encoded})+"
    noscheme = rf"{first_without_colon}(?:/{character}*)*"
    query = rf"(?:\?(?:{character}|[/?])*)?"
    fragment = rf"(?:#(?:{character}|[/?])*)?"
    hierarchy = rf"(?://{authority}{empty_or_absolute}|{absolute}|{rootless}|)"
    relative = rf"(?://{authority}{empty_or_absolute}|{absolute}|{noscheme}|)"
    absolute_uri = rf"[a-zA-Z][a-zA-Z0-9+.-]*:{hierarchy}{query}{fragment}"
    return absolute_uri, rf"(?:{absolute_uri}|{relative}{query}{fragment})"


_UNRESERVED = r"a-zA-Z0-9._~\-"
_WIDE = _UNRESERVED + (
    r"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
    + "".join(rf"\u{{{plane:x}0000}}-\u{{{plane:x}fffd}}" for plane in range(1, 15))
)
_URI, _URI_REFERENCE = _uri(_UNRESERVED)
_IRI, _IRI_REFERENCE = _uri(_WIDE)
_POINTER = r"(?:/(?:[^/~]|~[01])*)*"
_DURATION = (
    r"P(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
    r"(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?"
    r"|T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))"
)
_VARIABLE = (
    r"(?:[a-zA-Z0-9_]|%[0-9a-fA-F]{2})(?:\.?(?:[a-zA-Z0-9_]|%[0-9a-fA-F]{2}))*(?:\*|:[1-9][0-9]{0,3})?"
)
_TEMPLATE = (
    r"(?:[^\x00-\x20\x7f\"'%<>\\^`{|}]|%[0-9a-fA-F]{2}"
    rf"|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"
)

_BODIES = {
    "date": _YEAR_MONTH_DAY,
    "time": _TIME,
    "date-time": rf"{_YEAR_MONTH_DAY}[tT]{_TIME}",
    "duration": _DURATION,
    "email": _EMAIL,
    "hostname": _HOSTNAME,
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uri": _URI,
    "uri-reference": _URI_REFERENCE,
    "iri": _IRI,
    "iri-reference": _IRI_REFERENCE,
    "uri-template": _TEMPLATE,
    "uuid": r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    "json-pointer": _POINTER,
    "relative-json-pointer": rf"(?:0|[1-9][0-9]*)(?:\+[1-9][0-9]*|-[1-9][0-9]*)?(?:#|{_POINTER})",
}
PATTERNS = {name: f"^(?:{body})$" for name, body in _BODIES.items()}
"""the formats that can be enforced"""
LONGEST = {"hostname": 253}
"""formats with a bound on the length as well"""

UNDECIDABLE = {
    "regex": "expressions nest, and which of them are valid is not regular",
    "idn-hostname": "its rules for each script are not regular within reason",
    "idn-email": "its host is an idn-hostname",
}
"""formats of the standard that cannot be enforced, with the reason"""
