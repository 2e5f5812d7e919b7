"""Local servers that speak the protocols of real services, on loopback."""
