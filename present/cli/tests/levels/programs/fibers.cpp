// Fibers on several threads: mutexes, channels, sleeps, yields, fibers that start and join others.
// Each logs to the file of its argument who it is and on which thread, and when:
//   NAME TID BEFORE AFTER      in nanoseconds of CLOCK_MONOTONIC
//
//   fibers FILE round_robin|shared_work|work_stealing THREADS FIBERS
#define TB_OPTIONAL
#include <tracebraid/boost_fiber.hpp>

#include <boost/fiber/all.hpp>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace fibers = boost::fibers;
using tracebraid::fibers::traced;

struct Sample {
	std::string name;
	long tid;
	long before, after;
};

static std::mutex samples_mutex;
static std::vector<Sample> samples;
static fibers::mutex shared_mutex;
static fibers::buffered_channel<int> channel{ 8 };
static std::atomic<int> running{ 0 };

static long now()
{
	timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void sample(const std::string &name)
{
	long tid = syscall(SYS_gettid);
	long before = now(), after = now();
	// No fiber is switched while it holds a mutex of the kernel.
	std::lock_guard<std::mutex> lock{ samples_mutex };
	samples.push_back({ name, tid, before, after });
}

static void compute(unsigned turns)
{
	for (volatile unsigned turn = 0; turn < turns;)
		turn = turn + 1;
}

static void child(const std::string &name)
{
	tracebraid::fibers::set_name(name.c_str());
	sample(name);
	boost::this_fiber::yield();
	sample(name);
}

static void work(int number)
{
	std::string name = "fiber " + std::to_string(number);
	unsigned seed = number;
	tracebraid::fibers::set_name(name.c_str());
	for (int step = 0; step < 20; step++) {
		sample(name);
		compute(rand_r(&seed) % 20000);
		switch (rand_r(&seed) % 6) {
		case 0: boost::this_fiber::sleep_for(std::chrono::microseconds(rand_r(&seed) % 500)); break;
		case 1: {
			std::unique_lock<fibers::mutex> lock{ shared_mutex };
			sample(name);
			boost::this_fiber::yield();
			sample(name);
			break;
		}
		case 2: channel.push(number); break;
		case 3:
		case 4: {
			auto launch = rand_r(&seed) % 2 ? fibers::launch::post : fibers::launch::dispatch;
			std::string of = name + "/" + std::to_string(step);
			fibers::fiber started(launch, child, of);
			sample(name);
			started.join();
			break;
		}
		default: boost::this_fiber::yield();
		}
		sample(name);
	}
	running--;
}

static void drain()
{
	tracebraid::fibers::set_name("drain");
	int number;
	while (channel.pop(number) == fibers::channel_op_status::success)
		sample("drain");
}

static void schedule(const std::string &algorithm, unsigned threads)
{
	if (algorithm == "round_robin")
		fibers::use_scheduling_algorithm<traced<fibers::algo::round_robin>>();
	else if (algorithm == "shared_work")
		fibers::use_scheduling_algorithm<traced<fibers::algo::shared_work>>(true);
	else
		fibers::use_scheduling_algorithm<traced<fibers::algo::work_stealing>>(threads, true);
}

static void run(const std::string &algorithm, unsigned threads, int first, int last)
{
	schedule(algorithm, threads);
	std::vector<fibers::fiber> started;
	for (int number = first; number < last; number++)
		started.emplace_back(work, number);
	for (fibers::fiber &fiber : started)
		fiber.join();
	// The others may still take fibers from this thread.
	while (running > 0)
		boost::this_fiber::sleep_for(std::chrono::milliseconds(1));
}

int main(int, char **arguments)
{
	std::string algorithm = arguments[2];
	unsigned threads = std::atoi(arguments[3]);
	int count = std::atoi(arguments[4]);
	running = count;
	std::vector<std::thread> others;
	for (unsigned thread = 1; thread < threads; thread++)
		others.emplace_back(run, algorithm, threads, count * thread / threads, count * (thread + 1) / threads);
	schedule(algorithm, threads);
	fibers::fiber drained(drain);
	std::vector<fibers::fiber> started;
	for (int number = 0; number < count / int(threads); number++)
		started.emplace_back(work, number);
	for (fibers::fiber &fiber : started)
		fiber.join();
	while (running > 0)
		boost::this_fiber::sleep_for(std::chrono::milliseconds(1));
	channel.close();
	drained.join();
	for (std::thread &thread : others)
		thread.join();
	FILE *file = std::fopen(arguments[1], "w");
	for (const Sample &taken : samples)
		std::fprintf(file, "%ld %ld %ld %s\n", taken.tid, taken.before, taken.after, taken.name.c_str());
	return std::fclose(file);
}
