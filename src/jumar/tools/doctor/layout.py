"""Writes a `Machine` as plain named texts, the layout of `jumar doctor --collect`, which foreign.py reads back.

In: a `Machine`.  Out: name -> text, for collect.py.  Every file can be read by eye: that is what its owner does before it is sent.
"""

from __future__ import annotations

from jumar.tools.doctor.foreign import MARKER
from jumar.tools.doctor.machine import Identity, Listing, Machine


def texts(machine: Machine) -> dict[str, str]:
    """The files of a collection, each name without a leading slash."""
    told = {name: getattr(machine.identity, name) for name in Identity.__dataclass_fields__}
    head = [
        "# jumar doctor --collect 1",
        *(f"{name} = {seen.value}" for name, seen in told.items() if seen),
        *(f"# {n}" for n in machine.notes),
    ]
    found = {MARKER: "\n".join(head) + "\n"}
    for path, text in machine.files.items():
        found["files" + path] = text.text
    found["listings.txt"] = "".join(_listing(folder, listing) for folder, listing in sorted(machine.listings.items()))
    for number, output in enumerate(machine.outputs, 1):
        word = "-".join(w.strip("-/") for w in output.command.split())[:60].replace("/", "_")
        code = "" if output.code is None else f"\n[exit {output.code}]"
        found[f"outputs/{number:02d}-{word}.txt"] = f"$ {output.command}\n{output.text.text}{code}\n"
    found["environment.txt"] = "$ env\n" + "".join(f"{name}={seen.value}\n" for name, seen in sorted(machine.environment.items()))
    found["packages.txt"] = "$ pip list\nPackage Version\n------- -------\n" + "".join(
        f"{name} {seen.value}\n" for name, seen in sorted(machine.packages.items())
    )
    return {name: text for name, text in found.items() if text}


def _listing(folder: str, listing: Listing) -> str:
    rows = []
    for e in listing.entries:
        target = f" -> {e.target}" if e.target else ""
        size = f"{e.device[0]}, {e.device[1]}" if e.device else "0"
        rows.append(f"{e.mode or '-rw-r--r--'} 1 {e.owner or 'root'} {e.group or 'root'} {size} Jan 1 00:00 {e.name}{target}\n")
    return f"$ ls -la {folder}\n" + "".join(rows) + "\n"
