"""Recorded runs for other programs: CSV, JSON lines, TensorBoard, Minari, and policies as C.

What is written is made of the record and of nothing else; the run is only read, and may go on meanwhile.
"""

from optimist.exports.export import FORMATS, export
from optimist.exports.policy import export_policy

__all__ = ["FORMATS", "export", "export_policy"]
