/* Known call chains; the first argument selects one. Frames that a test looks for are neither inlined nor left by a
 * tail call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FRAME __attribute__((noinline, noclone))
static volatile long sink;

static long thread_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}

FRAME void burn(long ms) {
  long end = thread_ns() + ms * 1000000;
  while (thread_ns() < end)
    for (int i = 0; i < 50000; i++) sink += i;
}

FRAME void leaf(long ms) {
  burn(ms);
  usleep(3000);
  sink++;
}

FRAME long recurse(long depth, long a) {
  volatile long kept[4] = {depth, a};
  if (depth == 0)
    leaf(200);
  else
    recurse(depth - 1, a * 3 + kept[0]);
  sink += kept[1];
  return sink;
}

FRAME int compare(const void *a, const void *b) {
  burn(2);
  sink++;
  return *(const int *)a - *(const int *)b;
}

FRAME void sorter(void) {
  int values[16];
  for (int i = 0; i < 16; i++) values[i] = (i * 7) % 16;
  qsort(values, 16, sizeof *values, compare);
  sink += values[0];
}

FRAME void handler(int signal) {
  burn(100);
  sink += signal;
}

FRAME void interrupted(void) {
  raise(SIGUSR1);
  sink++;
}

/* A local variable with a larger alignment than the stack: the compiler realigns the stack, and the CFA becomes an expression. */
FRAME void realigned(void *(*call)(void *)) {
  alignas(64) volatile char local[128] = {1};
  sink += (long)((uintptr_t)local % 64);
  call((void *)local);
  sink += local[3];
}

FRAME void *burn_there(void *local) {
  burn(100);
  sink++;
  return local;
}

static pthread_barrier_t barrier;
FRAME void *thread(void *ms) {
  pthread_barrier_wait(&barrier);
  burn((long)ms);
  printf("%ld %ld\n", syscall(SYS_gettid), thread_ns());
  return NULL;
}

static void threads(void) {
  pthread_t all[4];
  pthread_barrier_init(&barrier, NULL, 4);
  for (long i = 0; i < 4; i++) pthread_create(&all[i], NULL, thread, (void *)(200 + 50 * i));
  for (int i = 0; i < 4; i++) pthread_join(all[i], NULL);
}

static void plugin(const char *path) {
  for (int i = 0; i < 3; i++) {
    void *library = dlopen(path, RTLD_NOW);
    void (*call)(void (*)(long)) = (void (*)(void (*)(long)))dlsym(library, "plugin");
    call(burn);
    dlclose(library);
  }
}

static volatile int stop;
static void *closer(void *path) {
  while (!stop) {
    void *library = dlopen(path, RTLD_NOW);
    void (*call)(void (*)(long)) = (void (*)(void (*)(long)))dlsym(library, "plugin_once");
    call(burn);
    dlclose(library);
  }
  return NULL;
}

static void closing(char *path) {
  pthread_t thread;
  pthread_create(&thread, NULL, closer, path);
  for (int i = 0; i < 10; i++) recurse(5, 1);
  stop = 1;
  pthread_join(thread, NULL);
}

static volatile int signals;
static void count(int signal) {
  (void)signal;
  signals++;
}

static void profiled(void) {
  signal(SIGPROF, count);
  struct itimerval every = {{0, 10000}, {0, 10000}};
  setitimer(ITIMER_PROF, &every, NULL);
  burn(500);
  /* The kernel counts clock ticks at which the program is running, which may be few on a busy machine. */
  while (signals < 10) burn(10);
  printf("%d\n", signals);
}

static void blocked(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  burn(200);
}

static void traps(void) {
  struct sigaction action = {.sa_handler = count}, old;
  sigaction(SIGTRAP, &action, &old);
  printf("%d ", old.sa_handler == SIG_DFL);
  raise(SIGTRAP);
  __asm__ volatile("int3");
  burn(100);
  printf("%d ", signals);
  printf("%d\n", signal(SIGTRAP, SIG_DFL) == count);
}

/* Waits until a thread sleeps, however busy the machine is, and then long enough for the wait to be recorded. */
static void until_asleep(pid_t thread) {
  char path[64], line[256], *end, state = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", thread);
  while (state != 'S') {
    FILE *stat = fopen(path, "r");
    if (!stat) return;
    end = fgets(line, sizeof line, stat) ? strrchr(line, ')') : NULL;
    state = end ? end[2] : 0;
    fclose(stat);
    usleep(1000);
  }
  usleep(10000);
}

static void *waker(void *pipe) {
  until_asleep(getpid());
  return (void *)write(*(int *)pipe, "x", 1);
}

#define TRY(name, call)                                   \
  do {                                                    \
    errno = 0;                                            \
    if ((call) < 0 && errno == EINTR) printf("%s ", name); \
  } while (0)

static void *forker(void *none) {
  for (int i = 0; i < 20; i++) {
    pid_t child = fork();
    if (!child) _exit(0);
    waitpid(child, NULL, 0);
  }
  return none;
}

/* The first signals arrive while other threads fork. */
static void forking(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, forker, NULL);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

static void waits(void) {
  struct timespec ms10 = {0, 10000000};
  int ends[2];
  char byte;
  pthread_t thread;
  if (pipe(ends)) return;
  struct pollfd wanted = {ends[0], POLLIN, 0};
  TRY("poll", poll(&wanted, 1, 10));
  TRY("nanosleep", nanosleep(&ms10, NULL));
  TRY("clock_nanosleep", -clock_nanosleep(CLOCK_MONOTONIC, 0, &ms10, NULL));
  pthread_create(&thread, NULL, waker, &ends[1]);
  TRY("read", read(ends[0], &byte, 1));
  pthread_join(thread, NULL);
  struct epoll_event event;
  TRY("epoll_wait", epoll_wait(epoll_create1(0), &event, 1, 10));
  fd_set set;
  FD_ZERO(&set);
  struct timeval tv = {0, 10000};
  TRY("select", select(0, &set, NULL, NULL, &tv));
  sigset_t none, usr2;
  sigemptyset(&none);
  TRY("ppoll", ppoll(NULL, 0, &ms10, &none));
  int word = 0;
  TRY("futex", syscall(SYS_futex, &word, 0, 0, &ms10, NULL, 0));
  sigemptyset(&usr2);
  sigaddset(&usr2, SIGUSR2);
  sigprocmask(SIG_BLOCK, &usr2, NULL);
  TRY("sigtimedwait", sigtimedwait(&usr2, NULL, &ms10));
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  socklen_t length = sizeof address;
  int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
  bind(listener, (void *)&address, sizeof(sa_family_t));
  getsockname(listener, (void *)&address, &length);
  listen(listener, 0);
  connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&address, length);
  struct timeval timeout = {0, 10000};
  setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  TRY("connect", connect(client, (void *)&address, length));
  TRY("accept", accept(listener, NULL, NULL));
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    until_asleep(parent);
    _exit(0);
  }
  TRY("waitpid", waitpid(child, NULL, 0));
  printf("end\n");
}

static void forks(void) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    recurse(10, 1);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static void lists(void) {
  char *environment[] = {"X=y", NULL};
  if (execl("/nonexistent", "a", "b", NULL) < 0 && execlp("nonexistent-too", "a", NULL) < 0) printf("failed ");
  burn(100);
  fflush(stdout);
  execle("/bin/sh", "sh", "-c", "echo $1 $2 $3 $4 $5 $6 $7 $8 X=$X", "sh", "1", "2", "3", "4", "5", "6", "7", "8",
         NULL, environment);
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "deep")) recurse(28, 1);
  if (!strcmp(what, "sort")) sorter();
  if (!strcmp(what, "signal")) {
    struct sigaction action = {.sa_handler = handler};
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    interrupted();
  }
  if (!strcmp(what, "altstack")) {
    stack_t stack = {.ss_sp = malloc(8192), .ss_size = 8192};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    interrupted();
  }
  if (!strcmp(what, "realigned")) realigned(burn_there);
  if (!strcmp(what, "plugin")) plugin(argv[2]);
  if (!strcmp(what, "closing")) closing(argv[2]);
  if (!strcmp(what, "threads")) threads();
  if (!strcmp(what, "fork")) forks();
  if (!strcmp(what, "exec")) execl(argv[0], argv[0], "deep", NULL);
  if (!strcmp(what, "lists")) lists();
  if (!strcmp(what, "profiled")) profiled();
  if (!strcmp(what, "blocked")) blocked();
  if (!strcmp(what, "traps")) traps();
  if (!strcmp(what, "int3")) __asm__ volatile("int3");
  if (!strcmp(what, "waits")) waits();
  if (!strcmp(what, "forking")) forking();
  return 0;
}
