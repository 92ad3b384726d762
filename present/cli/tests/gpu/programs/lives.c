/* Processes that use OpenCL and start or end in unusual ways.
 *
 *     lives LIFE COUNTS
 *
 * Standard output must not depend on whether the program is recorded.
 */
#include "counted.h"
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define COMMANDS 100

static cl_device_id device;
static cl_context context;
static const char *path;

static void open_device(void)
{
	cl_platform_id platform;
	cl_int status;

	CHECK(CALL(clGetPlatformIDs, 1, &platform, NULL));
	CHECK(CALL(clGetDeviceIDs, platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	context = CALL(clCreateContext, NULL, 1, &device, NULL, NULL, &status);
	CHECK(status);
}

static cl_command_queue new_queue(cl_command_queue_properties properties)
{
	cl_queue_properties list[] = { CL_QUEUE_PROPERTIES, properties, 0 };
	cl_int status;
	cl_command_queue queue = CALL(clCreateCommandQueueWithProperties, context, device, list, &status);

	CHECK(status);
	return queue;
}

/* Writes numbers, reads them back and adds them up. */
static long transfer(int number)
{
	cl_command_queue queue = new_queue(number % 2 ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0);
	cl_event event;
	cl_int status;
	cl_mem buffer = CALL(clCreateBuffer, context, CL_MEM_READ_WRITE, sizeof number, NULL, &status);
	long sum = 0;

	CHECK(status);
	for (int i = 0; i < COMMANDS / 2; i++) {
		int from = number * COMMANDS + i, to = 0;

		CHECK(COMMAND(clEnqueueWriteBuffer, queue, buffer, i % 2, 0, sizeof from, &from, 0, NULL, &event));
		CHECK(COMMAND(clEnqueueReadBuffer, queue, buffer, CL_TRUE, 0, sizeof to, &to, 1, &event, NULL));
		CHECK(CALL(clReleaseEvent, event));
		sum += to;
	}
	CHECK(CALL(clFinish, queue));
	CHECK(CALL(clReleaseMemObject, buffer));
	CHECK(CALL(clReleaseCommandQueue, queue));
	return sum;
}

static void *in_thread(void *number)
{
	return (void *)transfer((int)(long)number);
}

static int threads(void)
{
	pthread_t threads[THREADS];
	long sum = 0;

	open_device();
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, in_thread, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		void *of_thread;

		pthread_join(threads[i], &of_thread);
		sum += (long)of_thread;
	}
	printf("threads: %ld\n", sum);
	return write_counts(path);
}

/* The first calls of a program, by several threads. */
static void *first(void *barrier)
{
	cl_uint number;

	pthread_barrier_wait(barrier);
	CHECK(CALL(clGetPlatformIDs, 0, NULL, &number));
	return NULL;
}

static int together(void)
{
	pthread_t threads[THREADS];
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, first, &barrier);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return write_counts(path);
}

/* The parent uses OpenCL after its child. */
static int forks(void)
{
	int status;
	pid_t child = fork();

	if (child)
		waitpid(child, &status, 0);
	open_device();
	printf("%s: %ld\n", child ? "parent" : "child", transfer(child ? 1 : 2));
	fflush(stdout);
	if (write_counts(path))
		return 1;
	return child ? WEXITSTATUS(status) : 3;
}

static void CL_CALLBACK leave(cl_event event, cl_int status, void *how)
{
	(void)event;
	printf("complete: %d\n", status);
	fflush(stdout);
	if (write_counts(path))
		_exit(1);
	if (how)
		_exit(5);
	exit(4);
}

/* The process ends in the callback of a command. */
static int callback(void *how)
{
	cl_command_queue queue;
	cl_event event, user;
	cl_int status;

	open_device();
	queue = new_queue(0);
	user = CALL(clCreateUserEvent, context, &status);
	CHECK(status);
	CHECK(COMMAND(clEnqueueMarkerWithWaitList, queue, 1, &user, &event));
	CHECK(CALL(clSetEventCallback, event, CL_COMPLETE, leave, how));
	CHECK(CALL(clFlush, queue));
	count("clSetUserEventStatus", 0);
	clSetUserEventStatus(user, CL_COMPLETE);
	pause();
	return 1;
}

/* Two commands wait for an event that does not occur, and one fails. */
static int unfinished(void)
{
	cl_command_queue queue, other;
	cl_event event, user, failing;
	cl_int status;

	open_device();
	queue = new_queue(0);
	other = new_queue(0);
	user = CALL(clCreateUserEvent, context, &status);
	CHECK(status);
	failing = CALL(clCreateUserEvent, context, &status);
	CHECK(status);
	CHECK(COMMAND(clEnqueueMarkerWithWaitList, other, 1, &failing, &event));
	CHECK(CALL(clSetUserEventStatus, failing, -5));
	status = CALL(clWaitForEvents, 1, &event);
	printf("failed: %d\n", status);
	CHECK(COMMAND(clEnqueueMarkerWithWaitList, queue, 1, &user, &event));
	CHECK(CALL(clReleaseEvent, event));
	CHECK(COMMAND(clEnqueueMarkerWithWaitList, queue, 1, &user, NULL));
	CHECK(CALL(clFlush, queue));
	printf("commands wait\n");
	fflush(stdout);
	if (write_counts(path))
		return 1;
	_exit(6);
}

/* Enqueues commands until standard input ends, and prints their number. */
static int until(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	cl_command_queue queue;
	int number = 0;

	open_device();
	queue = new_queue(0);
	for (; !poll(&input, 1, 1); number++) {
		CHECK(clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL));
		CHECK(clFinish(queue));
	}
	printf("%d\n", number);
	return 0;
}

int main(int argc, char **argv)
{
	const char *life = argc == 3 ? argv[1] : "";

	path = argv[2];
	if (!strcmp(life, "threads"))
		return threads();
	if (!strcmp(life, "together"))
		return together();
	if (!strcmp(life, "fork"))
		return forks();
	if (!strcmp(life, "exit"))
		return callback(NULL);
	if (!strcmp(life, "_exit"))
		return callback("");
	if (!strcmp(life, "unfinished"))
		return unfinished();
	if (!strcmp(life, "until"))
		return until();
	return 2;
}
