"""Holds a redis-py lock until stdin is closed: redis_lock.py PORT NAME"""

import signal
import sys

import redis

# The test sends SIGINT and closes stdin. The end of stdin is enough.
signal.signal(signal.SIGINT, signal.SIG_IGN)
port, name = sys.argv[1:3]
client = redis.Redis(port=int(port))
lock = client.lock(name, timeout=60)
if not lock.acquire(blocking=False):
    print("waiting", flush=True)
    lock.acquire(blocking_timeout=60)
print("held", flush=True)
sys.stdin.read()
lock.release()
