"""CEL with JSON's numbers: the grammar is cel-python's, the meaning of numbers and the bound on work are ours."""
