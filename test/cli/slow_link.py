#!/usr/bin/env python3
"""A TCP relay with latency that counts the bytes of both directions.

    slow_link.py TO_PORT MILLISECONDS COUNTS [BYTES]

Every byte arrives MILLISECONDS after it was sent, half of the time of a round
trip; bandwidth is not limited. Prints its port, and writes "SENT RECEIVED" as
the client sees it, in bytes, to the file COUNTS whenever a connection ends. The
first connection delivers no more than BYTES to the client, and stays open.
"""
import asyncio
import sys

TO, DELAY, COUNTS = int(sys.argv[1]), float(sys.argv[2]) / 1000, sys.argv[3]
count = {"sent": 0, "received": 0}
rooms = [int(arg) for arg in sys.argv[4:]]  # of connections to come


async def carry(reader, writer, way, room=1 << 60):
    loop = asyncio.get_running_loop()
    queue = asyncio.Queue()

    async def deliver():
        nonlocal room
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(0, due - loop.time()))
            if not data:
                break
            writer.write(data[:room])
            room -= len(data[:room])
        writer.close()

    delivery = asyncio.create_task(deliver())
    try:
        while data := await reader.read(1 << 16):
            count[way] += len(data)
            queue.put_nowait((loop.time() + DELAY, data))
    except ConnectionError:
        pass
    queue.put_nowait((loop.time() + DELAY, b""))
    await delivery
    with open(COUNTS, "w", encoding="ascii") as out:
        print(count["sent"], count["received"], file=out)


async def relay(reader, writer):
    room = rooms.pop() if rooms else 1 << 60
    up_reader, up_writer = await asyncio.open_connection("127.0.0.1", TO)
    await asyncio.gather(carry(reader, up_writer, "sent"),
                         carry(up_reader, writer, "received", room))


async def main():
    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
