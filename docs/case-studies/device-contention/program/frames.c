/* A program that processes frames on a device, which another part of it uses as well.
 *
 * A frame comes every 20 ms: it is copied to the device, three kernels process it, and it is copied
 * back. Another thread makes previews, with a queue of its own on the same device: each tenth frame,
 * one is due just after the frame has begun.
 *
 *     frames TRUTH [FRAMES]
 *
 * writes to the file TRUTH, for each frame, its number and whether a preview was made within it.
 */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#define TB_OPTIONAL
#include <CL/cl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tracebraid/probe.h>
#include "../../common/work.h"

TB_EVENT(frames, frame_begin, TB_INT32(frame));
TB_EVENT(frames, frame_end, TB_INT32(frame));

#define FRAME_NS 20000000L
/* A preview in ten frames. */
#define PREVIEW_FRAMES 10
/* Delay of a preview after the begin of its frame: while its first kernels execute. */
#define LATER_NS 200000L
#define PIXELS (1 << 16)
#define BYTES (PIXELS * sizeof(float))

static const char *const source =
	"void work(__global float *pixels, int rounds) {\n"
	"  size_t i = get_global_id(0);\n"
	"  float x = pixels[i];\n"
	"  for (int n = 0; n < rounds; n++) x = x * 0.999f + 0.5f;\n"
	"  pixels[i] = x;\n"
	"}\n"
	"__kernel void denoise(__global float *pixels, int rounds) { work(pixels, rounds); }\n"
	"__kernel void sharpen(__global float *pixels, int rounds) { work(pixels, rounds); }\n"
	"__kernel void tone(__global float *pixels, int rounds) { work(pixels, rounds); }\n"
	"__kernel void render_preview(__global float *pixels, int rounds) { work(pixels, rounds); }\n";

static cl_device_id device;
static cl_context context;
static cl_program program;
/* Rounds of a kernel that takes a millisecond. */
static int rounds_on_device = 100;
static struct timespec start;
static int frames;
/* Number of begins and ends of previews. */
static volatile int previews;

static void check(cl_int status, const char *step)
{
	if (status != CL_SUCCESS) {
		fprintf(stderr, "frames: %s: %d\n", step, status);
		exit(1);
	}
}

static void open_device(void)
{
	cl_platform_id platform;
	cl_int status;
	check(clGetPlatformIDs(1, &platform, NULL), "platform");
	check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "device");
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
	check(status, "context");
	program = clCreateProgramWithSource(context, 1, (const char **)&source, NULL, &status);
	check(status, "program");
	check(clBuildProgram(program, 1, &device, "", NULL, NULL), "build");
}

static cl_command_queue queue(void)
{
	cl_int status;
	cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
	check(status, "queue");
	return queue;
}

static cl_mem buffer(void)
{
	cl_int status;
	cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &status);
	check(status, "buffer");
	return buffer;
}

/* A kernel that takes a number of milliseconds. */
static cl_kernel kernel(const char *name, cl_mem pixels, double ms)
{
	cl_int status, rounds = (cl_int)(ms * rounds_on_device);
	cl_kernel kernel = clCreateKernel(program, name, &status);
	check(status, name);
	check(clSetKernelArg(kernel, 0, sizeof pixels, &pixels), name);
	check(clSetKernelArg(kernel, 1, sizeof rounds, &rounds), name);
	return kernel;
}

static void enqueue(cl_command_queue queue, cl_kernel kernel)
{
	size_t size = PIXELS, group = 256;
	check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, &group, 0, NULL, NULL), "kernel");
}

/* Measures the rounds of a kernel in a millisecond: the fastest of some tries. */
static void calibrate_device(void)
{
	cl_command_queue own = queue();
	cl_kernel one = kernel("render_preview", buffer(), 10);
	int64_t best = INT64_MAX;
	for (int i = 0; i < 5; i++) {
		int64_t begin = nanoseconds(CLOCK_MONOTONIC);
		enqueue(own, one);
		check(clFinish(own), "finish");
		int64_t took = nanoseconds(CLOCK_MONOTONIC) - begin;
		best = took < best ? took : best;
	}
	rounds_on_device = (int)(rounds_on_device * 10000000.0 / (double)best) + 1;
}

static void *make_previews(void *unused)
{
	cl_command_queue own = queue();
	cl_kernel render = kernel("render_preview", buffer(), 10);
	(void)unused;
	for (long i = PREVIEW_FRAMES / 2; i < frames; i += PREVIEW_FRAMES) {
		sleep_until(&start, i * FRAME_NS + LATER_NS);
		previews++;
		enqueue(own, render);
		check(clFinish(own), "preview");
		previews++;
	}
	return NULL;
}

struct pipeline {
	cl_command_queue queue;
	cl_mem pixels;
	cl_kernel steps[3];
	float *frame;
};

__attribute__((noinline)) static void process_frame(const struct pipeline *on)
{
	check(clEnqueueWriteBuffer(on->queue, on->pixels, CL_FALSE, 0, BYTES, on->frame, 0, NULL, NULL), "write");
	for (int i = 0; i < 3; i++)
		enqueue(on->queue, on->steps[i]);
	check(clEnqueueReadBuffer(on->queue, on->pixels, CL_FALSE, 0, BYTES, on->frame, 0, NULL, NULL), "read");
	check(clFinish(on->queue), "finish");
}

int main(int argc, char **argv)
{
	FILE *truth = argc > 1 ? fopen(argv[1], "w") : NULL;
	pthread_t other;
	frames = argc > 2 ? atoi(argv[2]) : 200;
	if (!truth || frames < 1) {
		fprintf(stderr, "usage: frames TRUTH [FRAMES]\n");
		return 2;
	}
	fprintf(truth, "id,cause\n");
	/* The threads of the driver inherit the priority. Where the CPUs are the device, the program must
	 * get one of them while the device is busy, as beside a GPU. */
	go_before(5);
	open_device();
	go_before(10);
	calibrate_device();
	struct pipeline pipeline = { .queue = queue(), .pixels = buffer(), .frame = calloc(1, BYTES) };
	pipeline.steps[0] = kernel("denoise", pipeline.pixels, 1.5);
	pipeline.steps[1] = kernel("sharpen", pipeline.pixels, 1.0);
	pipeline.steps[2] = kernel("tone", pipeline.pixels, 0.5);
	/* A driver may compile a kernel when it is first used. */
	process_frame(&pipeline);
	clock_gettime(CLOCK_MONOTONIC, &start);
	start.tv_sec++;
	pthread_create(&other, NULL, make_previews, NULL);
	for (int frame = 0; frame < frames; frame++) {
		sleep_until(&start, frame * FRAME_NS);
		int before = previews;
		tb_trace(frames, frame_begin, frame);
		process_frame(&pipeline);
		tb_trace(frames, frame_end, frame);
		fprintf(truth, "%d,%s\n", frame, previews == before ? "none" : "preview");
	}
	pthread_join(other, NULL);
	return fclose(truth) != 0;
}
