"""Prints a free port for a server that a script starts."""
import random
import socket


def free_port():
    """A port below those that the system gives to clients, so that none takes it before the server listens."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as listening:
            try:
                listening.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


if __name__ == "__main__":
    print(free_port())
