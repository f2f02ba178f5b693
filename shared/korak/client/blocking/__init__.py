"""The client that blocks: made from the other one."""
