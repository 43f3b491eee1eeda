"""For tests whose servers must be told their port before they run."""
import socket


def hold_port():
    """A socket that has a free port of 127.0.0.1, its port with getsockname()[1]. While the socket
    is open, the system gives the port to nobody who asks for any; a server that names the port can
    listen there (with SO_REUSEADDR, as servers do)."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held
