"""A chain: a report that is collected, drafted, reviewed by a person and published."""
