"""The exact output distributions of the zoo, and the true privacy loss that follows from them."""
