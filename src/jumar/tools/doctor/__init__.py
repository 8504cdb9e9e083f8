"""The doctor of a machine: what is there is gathered, checks make facts of it, and the knowledge's rules say which layer is at fault.

In: this machine (gather.py) or files copied off another one (foreign.py), both as a `Machine`.  Out: facts for `jumar.tools.knowledge`.
"""
