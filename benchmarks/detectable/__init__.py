"""Whether what results call detectable is refuted nine times in ten, and not far too cautious."""
