"""The paper's results, each a call that takes an `Order` and returns the files it made."""

from optimist.paper.comparison import peers
from optimist.paper.figure4 import figure4
from optimist.paper.figure5 import figure5
from optimist.paper.order import Order
from optimist.paper.table import table

RESULTS = {"table": table, "figure4": figure4, "figure5": figure5, "peers": peers}

__all__ = ["RESULTS", "Order", "figure4", "figure5", "peers", "table"]
