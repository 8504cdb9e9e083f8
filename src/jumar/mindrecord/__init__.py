"""`mindspore.mindrecord`: files of rows, written and read.

In: rows as dicts.  Out: the files that `dataset.MindDataset` reads.  The work is done in dataset/mindrecord.py and dataset/recordwriter.py.
"""

from jumar.dataset.mindrecord import FileReader
from jumar.dataset.recordwriter import FileWriter

__all__ = ["FileReader", "FileWriter"]
