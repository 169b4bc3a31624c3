"""Holds a kazoo lock until stdin is closed: kazoo_lock.py HOST:PORT PATH [EXTRA_PATTERN]"""

import signal
import sys

from kazoo.client import KazooClient

# The test sends SIGINT and closes stdin. The end of stdin is enough.
signal.signal(signal.SIGINT, signal.SIG_IGN)
hosts, path, pattern = sys.argv[1:4]
client = KazooClient(hosts=hosts)
client.start(timeout=10)
lock = client.Lock(path, "foreign", extra_lock_patterns=[pattern] if pattern else [])
if not lock.acquire(blocking=False):
    print("waiting", flush=True)
    lock.acquire(timeout=60)
print("held", flush=True)
sys.stdin.read()
lock.release()
client.stop()
