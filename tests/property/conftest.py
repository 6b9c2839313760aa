"""Some properties are tried on what the benchmarks make; they are not installed, and run from the checkout."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
