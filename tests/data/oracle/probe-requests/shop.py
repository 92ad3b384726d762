# Requests as spans, each with what it cost: in its own thread, and in another one that it waits for.
import mmap, os, queue, sys, threading
sys.path.insert(0, sys.argv[1])
import tracebraid, ctypes
lib = tracebraid._library
lib.tb_prof_in.argtypes = lib.tb_prof_out.argtypes = [ctypes.c_char_p]
zero, null = os.open("/dev/zero", os.O_RDONLY), os.open("/dev/null", os.O_WRONLY)
PAGE = mmap.PAGESIZE
def cost(read, written, pages, items):
    lib.tb_prof_in(b"cost")
    for _ in range(2):
        os.read(zero, read)
    os.write(null, b"x" * written)
    memory = mmap.mmap(-1, pages * PAGE) if pages else None
    for page in range(pages):
        memory[page * PAGE] = 1
    for item in range(items):
        tracebraid.probe("shop:batch", items=item + 1)
    lib.tb_prof_out(b"cost")
asked, done = queue.SimpleQueue(), queue.SimpleQueue()
# Threads on separate CPUs, so that the requesting thread waits instead of being preempted.
def helper():
    os.sched_setaffinity(0, {1})
    while (work := asked.get()) is not None:
        cost(*work)
        done.put(None)
os.sched_setaffinity(0, {0})
helping = threading.Thread(target=helper); helping.start()
# The first call of each kind costs more.
cost(1, 1, 1, 1); asked.put((1, 1, 1, 1)); done.get()
for number in range(30):
    read, written, pages, items = 100 + number, 10 + number, 8 * (number % 3), number % 4
    tracebraid.probe("shop:truth", id=5000 + number, read=4 * read if number % 2 else 2 * read, written=2 * written if number % 2 else written, pages=2 * pages if number % 2 else pages, items=(items * (items + 1)) // 2 * (2 if number % 2 else 1))
    lib.tb_span_begin(5000 + number, b"request")
    cost(read, written, pages, items)
    if number % 2:
        asked.put((read, written, pages, items)); done.get()
    lib.tb_span_end(5000 + number)
# These begin here and end elsewhere, but for the last.
def end(ids):
    for id in ids:
        lib.tb_span_end(id)
for id in range(10):
    lib.tb_span_begin(id, b"return" if id % 2 else b"order")
ending = threading.Thread(target=end, args=(range(9),)); ending.start(); ending.join()
asked.put(None); helping.join()
