"""The methods of the papers, one room each, as published; the default method is not among them."""
