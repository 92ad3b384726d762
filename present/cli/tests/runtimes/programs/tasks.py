# Tasks that wait for what asyncio offers. Prints segments: TASK TID BEGIN END.
import asyncio
import sys
import threading
import time

log = []


def compute(us):
    task = asyncio.current_task().get_name()
    begin = time.monotonic_ns()
    while time.monotonic_ns() - begin < us * 1000:
        pass
    log.append((task, threading.get_native_id(), begin, time.monotonic_ns()))


async def worker(number, lock, semaphore, queue, event):
    compute(50)
    await asyncio.sleep(0.001 * number)
    compute(30)
    async with lock:
        compute(30)
        await asyncio.sleep(0)
        compute(30)
        await asyncio.sleep(0.001)
    async with semaphore:
        await asyncio.sleep(0.004)
        compute(10)
    await queue.put(number)
    compute(20)
    await event.wait()
    compute(10)
    if number == 3:
        raise KeyError("expected")
    return number


async def client(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(3):
        writer.write(b"x\n")
        await writer.drain()
        assert await reader.readline() == b"x\n"
        compute(20)
    writer.close()


async def serve(reader, writer):
    while await reader.readline():
        compute(10)
        writer.write(b"x\n")
        await asyncio.sleep(0.001)
    writer.close()


async def main():
    lock, queue, event = asyncio.Lock(), asyncio.Queue(1), asyncio.Event()
    semaphore = asyncio.Semaphore(1)
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    workers = [
        asyncio.create_task(worker(number, lock, semaphore, queue, event), name=f"w{number}")
        for number in range(6)
    ]
    port = server.sockets[0].getsockname()[1]
    network = asyncio.create_task(client(port), name="client")
    never = asyncio.create_task(asyncio.sleep(100), name="never")
    assert sorted([await queue.get() for _ in workers]) == list(range(6))
    event.set()
    results = await asyncio.gather(*workers, return_exceptions=True)
    assert results[2] == 2 and isinstance(results[3], KeyError), results
    await network
    never.cancel()
    try:
        await never
    except asyncio.CancelledError:
        compute(5)
    assert await asyncio.get_running_loop().run_in_executor(None, sum, (1, 2)) == 3
    server.close()
    return 5


if "UVLOOP" in globals():
    import uvloop

    uvloop.install()
assert asyncio.run(main()) == 5
for segment in log:
    print(*segment)
