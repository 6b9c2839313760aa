"""The audit itself: settings, the two loops (explore, then certify), early stopping, judging, the public functions."""
