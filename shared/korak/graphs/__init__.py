"""Graph documents: what may stand in one, whether it holds, and the form that runs."""
