"""Methods from the literature, as published: one package per paper, plus what they share.

The default method of an audit is not among them; it lives in `epsilometer.methods`.
"""
