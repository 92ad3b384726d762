// A pipeline of transfers and kernels, in several ways: the use cases of D. Couturier, M. Dagenais:
// LTTng CLUST, 2015, sections 4.7 and 4.8.
//
// gpu-pipeline MODE ITERATIONS
//   hog     the host computes between iterations, on a CPU that another process uses as well
//   serial  one queue, and the host waits for each transfer
//   queues  several queues, and the host waits at the end
//   event   each kernel waits for an event of the program, which sleeps first

#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define QUEUES 4
#define FLOATS (1 << 20)

static const char *SOURCE =
    "__kernel void work(__global float *a) {\n"
    "  size_t i = get_global_id(0);\n"
    "  float x = a[i];\n"
    "  for (int n = 0; n < 4; n++) x = x * 0.999f + 0.5f;\n"
    "  a[i] = x;\n"
    "}\n";

static cl_context context;
static cl_command_queue queues[QUEUES];
static cl_kernel kernels[QUEUES];
static cl_mem buffers[QUEUES];
static float *data[QUEUES];

static void check(cl_int status, const char *what) {
  if (status != CL_SUCCESS) {
    fprintf(stderr, "%s: %d\n", what, status);
    exit(1);
  }
}

static void set_up(void) {
  cl_platform_id platform;
  cl_device_id device;
  cl_int status;
  check(clGetPlatformIDs(1, &platform, NULL), "platform");
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "device");
  context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
  check(status, "context");
  cl_program program = clCreateProgramWithSource(context, 1, &SOURCE, NULL, &status);
  check(status, "program");
  check(clBuildProgram(program, 1, &device, "", NULL, NULL), "build");
  for (int q = 0; q < QUEUES; q++) {
    queues[q] = clCreateCommandQueue(context, device, 0, &status);
    check(status, "queue");
    buffers[q] = clCreateBuffer(context, CL_MEM_READ_WRITE, FLOATS * sizeof(float), NULL, &status);
    check(status, "buffer");
    kernels[q] = clCreateKernel(program, "work", &status);
    check(status, "kernel");
    check(clSetKernelArg(kernels[q], 0, sizeof(cl_mem), &buffers[q]), "argument");
    data[q] = calloc(FLOATS, sizeof(float));
  }
}

static void iterate(int q, cl_bool waits, cl_uint events, const cl_event *event) {
  size_t size = FLOATS;
  check(clEnqueueWriteBuffer(queues[q], buffers[q], waits, 0, size * sizeof(float), data[q], 0, NULL, NULL), "write");
  check(clEnqueueNDRangeKernel(queues[q], kernels[q], 1, NULL, &size, NULL, events, event, NULL), "kernel");
  check(clEnqueueReadBuffer(queues[q], buffers[q], waits, 0, size * sizeof(float), data[q], 0, NULL, NULL), "read");
}

static double cpu_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static void compute(double ms) {
  double end = cpu_ms() + ms;
  while (cpu_ms() < end) {
  }
}

static void take_cpu(int cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  sched_setaffinity(0, sizeof cpus, &cpus);
}

static pid_t start_hog(void) {
  pid_t hog = fork();
  if (hog == 0) {
    prctl(PR_SET_NAME, "cpu-hog");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    take_cpu(0);
    for (volatile long n = 0;; n++) {
    }
  }
  return hog;
}

static void with_hog(int iterations) {
  pid_t hog = start_hog();
  // The threads of the driver exist already, and keep all CPUs.
  take_cpu(0);
  for (int i = 0; i < iterations; i++) {
    iterate(0, CL_TRUE, 0, NULL);
    compute(10);
  }
  kill(hog, SIGKILL);
  waitpid(hog, NULL, 0);
}

static void with_events(int iterations) {
  for (int i = 0; i < iterations; i++) {
    cl_int status;
    cl_event event = clCreateUserEvent(context, &status);
    check(status, "event");
    iterate(0, CL_FALSE, 1, &event);
    clFlush(queues[0]);
    usleep(10000);
    check(clSetUserEventStatus(event, CL_COMPLETE), "status");
    check(clFinish(queues[0]), "finish");
    clReleaseEvent(event);
  }
}

int main(int count, char **arguments) {
  const char *mode = count > 1 ? arguments[1] : "serial";
  int iterations = count > 2 ? atoi(arguments[2]) : 10;
  set_up();
  if (strcmp(mode, "hog") == 0) {
    with_hog(iterations);
  } else if (strcmp(mode, "event") == 0) {
    with_events(iterations);
  } else if (strcmp(mode, "queues") == 0) {
    for (int i = 0; i < iterations; i++) iterate(i % QUEUES, CL_FALSE, 0, NULL);
    for (int q = 0; q < QUEUES; q++) check(clFinish(queues[q]), "finish");
  } else {
    for (int i = 0; i < iterations; i++) iterate(0, CL_TRUE, 0, NULL);
  }
  printf("%f\n", data[0][0]);
  return 0;
}
