# Factories, subclasses and unretrieved exceptions, all of whose output must stay the same.
import asyncio
import gc
import sys
import traceback


class Task(asyncio.Task):
    pass


def factory(loop, coroutine, **options):
    return Task(coroutine, loop=loop, **options)


async def fail(depth):
    if depth:
        await asyncio.sleep(0)
        await fail(depth - 1)
    raise ValueError("expected")


def callback():
    raise RuntimeError("in a callback")


async def main():
    loop = asyncio.get_running_loop()
    loop.set_task_factory(factory)
    task = loop.create_task(fail(2))
    assert type(task) is Task
    try:
        await task
    except ValueError:
        traceback.print_exc()
    loop.call_soon(callback)
    unretrieved = loop.create_task(fail(1), name="unretrieved")
    await asyncio.sleep(0.01)
    del unretrieved, task
    gc.collect()
    if sys.version_info >= (3, 12):
        loop.set_task_factory(asyncio.eager_task_factory)
        eager = loop.create_task(asyncio.sleep(0, "eager"), name="eager")
        print(await eager)
    print([task.get_name() for task in asyncio.all_tasks()], dir(asyncio.current_task()))


asyncio.run(main())
sys.exit(3)
