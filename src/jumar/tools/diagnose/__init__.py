"""`jumar diagnose`: logs in, the first error, the layer at fault, the evidence and the way out.

In: files, folders, archives, standard input.  Out: a `Verdict`.  Nothing that stands in a log is run or sent.
"""

from jumar.tools.diagnose.diagnose import Diagnosis, diagnose, diagnose_text

__all__ = ["Diagnosis", "diagnose", "diagnose_text"]
