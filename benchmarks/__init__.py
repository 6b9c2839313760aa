"""Speed, memory, start-up and power, each against its target: `python -m benchmarks` or `make bench`."""
