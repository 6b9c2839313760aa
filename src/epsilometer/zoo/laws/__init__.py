"""The exact output distributions of the zoo, and the true loss of privacy that follows from them."""
