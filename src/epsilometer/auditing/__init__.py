"""The audit itself, from its settings to its verdict.

The settings, the loops that explore and then certify, early stopping, the verdict, and the public
functions.
"""
