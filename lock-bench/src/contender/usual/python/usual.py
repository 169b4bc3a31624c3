"""Takes a lock of redis-py or kazoo, and gives it back, as stdin says: `acquire`, `release`.

The first line is a JSON object: what to connect to. Each line is answered by the same word.
"""

import json
import signal
import sys


def say(word):
    print(word, flush=True)


def redis_py(place):
    import redis

    host, port = place["hosts"][0].rsplit(":", 1)
    client = redis.Redis(
        host=host.strip("[]"),
        port=int(port),
        db=int(place["path"] or 0),
        username=place["user"],
        password=place["password"],
    )
    client.ping()
    return client.lock(place["name"], timeout=place["ttl"]), client.close


def kazoo(place):
    from kazoo.client import KazooClient
    from kazoo.exceptions import KazooException

    hosts = ",".join(place["hosts"]) + ("/" + place["path"] if place["path"] else "")
    login = [("digest", f"{place['user']}:{place['password']}")] if place["user"] else None
    client = KazooClient(hosts=hosts, timeout=place["ttl"], auth_data=login)
    client.start(timeout=10)

    def close():
        try:
            client.delete(place["name"])
        except KazooException:
            # Another worker's node is in it, or another worker has deleted it.
            pass
        client.stop()
        client.close()

    return client.Lock(place["name"], "distlock bench"), close


def main():
    # The end of stdin is the sign to end, not the terminal's Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    place = json.loads(sys.stdin.readline())
    lock, close = {"redis": redis_py, "kazoo": kazoo}[place["module"]](place)
    say("ready")
    act = {"acquire": lock.acquire, "release": lock.release}
    for line in sys.stdin:
        act[line.strip()]()
        say(line.strip())
    # A server that has gone must not keep it.
    signal.alarm(10)
    close()


try:
    main()
except Exception as error:
    say(f"{type(error).__name__}: {error}".replace("\n", " "))
    sys.exit(1)
