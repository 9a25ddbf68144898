"""What runs in the sandbox's own processes: plain standard library, started without the rest of the package."""
