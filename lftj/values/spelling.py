"""How texts and floats are spelled as constants of rule text."""

from __future__ import annotations

# What stands for a character that a literal does not hold as it is.
ESCAPES = {
    "\\": "\\\\",
    '"': '\\"',
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\v": "\\v",
}


def symbol_text(value: str) -> str:
    """A string as a literal: quoted, with escapes for quotes, control characters and lone surrogates."""
    out = []
    for char in value:
        if char in ESCAPES:
            out.append(ESCAPES[char])
        elif char.isprintable():
            out.append(char)
        else:
            code = ord(char)
            out.append(f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return f'"{"".join(out)}"'


def float_text(value: float) -> str:
    """A float so that it reads back as the same float, always with a decimal point: `1e+16` is written `1.0e+16`."""
    text = repr(float(value))
    mantissa, e, exponent = text.partition("e")
    return text if "." in mantissa or not mantissa.lstrip("-").isdigit() else f"{mantissa}.0{e}{exponent}"
