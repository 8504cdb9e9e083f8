"""Error codes of an Ascend host: told by number or name, and found in the lines of logs.

In: what somebody types, or a line of a log.  Out: `Code`s with module, symbol, meaning, layer and usual causes.
"""

from jumar.device.ascend.codes.codes import FAMILIES, Code, known_codes
from jumar.device.ascend.codes.mentions import Mention, codes_in
from jumar.device.ascend.codes.spellings import codes_of, families_named, find_code, near_codes, out_of_range

__all__ = [
    "FAMILIES",
    "Code",
    "Mention",
    "codes_in",
    "codes_of",
    "families_named",
    "find_code",
    "known_codes",
    "near_codes",
    "out_of_range",
]
