"""Prints ports that nothing listens on, and that the system gives to no connection that goes out: a
server that starts late finds them as free as they are now.

    free_ports.py COUNT
"""
import random
import socket
import sys


def outgoing():
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
            return tuple(int(n) for n in f.read().split())
    except OSError:
        return 32768, 65535


def is_free(port):
    with socket.socket() as s:
        try:
            s.bind(("", port))
        except OSError:
            return False
    return True


low, high = outgoing()
ports = [p for p in range(10000, 65536) if not low <= p <= high] or list(range(10000, 65536))
random.shuffle(ports)
free = (p for p in ports if is_free(p))
print(*(next(free) for _ in range(int(sys.argv[1]))))
