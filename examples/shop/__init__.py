"""A shop's orders: priced, reserved, charged, shipped."""
