// Virtual threads whose waits are known.
import java.util.ArrayList;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.locks.ReentrantLock;

public class Threads {
    interface Work {
        void run() throws InterruptedException;
    }

    static Thread start(String name, Work work) {
        return Thread.ofVirtual().name(name).start(() -> {
            try {
                work.run();
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        });
    }

    public static void main(String[] arguments) throws InterruptedException {
        var lock = new ReentrantLock();
        var queue = new SynchronousQueue<Integer>();
        var threads = new ArrayList<Thread>();
        for (int number = 0; number < 100; number++) {
            threads.add(start("worker-" + number, () -> {
                for (int round = 0; round < 5; round++) {
                    Thread.sleep(1);
                    lock.lock();
                    try {
                        Thread.yield();
                    } finally {
                        lock.unlock();
                    }
                }
            }));
        }
        threads.add(start("put", () -> {
            for (int number = 0; number < 2000; number++) queue.put(number);
        }));
        threads.add(start("take", () -> {
            for (int number = 0; number < 2000; number++) queue.take();
        }));
        for (var thread : threads) thread.join();
        System.out.println("done");
    }
}
