"""People, an attribute and ties that influence each other: the contingently acyclic relational model."""
