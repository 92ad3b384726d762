#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static char buf[8192];
static volatile int shared_fd;
static void nap(long us) { struct timespec t = {0, us * 1000}; nanosleep(&t, 0); }
static void *reader(void *arg) {
  int fd = open("mix.tmp", O_RDONLY);
  for (int i = 0; i < 30; i++) { pread(fd, buf, 1000, i * 1000); if (i % 10 == 0) nap(300); }
  close(fd);
  return 0;
}
static int opener(void *arg) { shared_fd = open("mix.tmp", O_RDONLY); nap(500); return 0; }
static char stack[65536];
int main(void) {
  int fd = open("mix.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
  for (int i = 0; i < 40; i++) { write(fd, buf, 4096); if (i % 8 == 0) nap(200); }
  lseek(fd, 0, SEEK_SET);
  while (read(fd, buf, 8192) > 0) {}
  int p[2]; pipe(p);
  if (fork() == 0) { for (int i = 0; i < 50; i++) { write(p[1], buf, 100); if (i % 5 == 0) nap(150); } _exit(0); }
  close(p[1]);
  while (read(p[0], buf, 100) > 0) {}
  wait(0);
  int s[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, s);
  for (int i = 0; i < 25; i++) { send(s[0], buf, 200, 0); recv(s[1], buf, 200, 0); }
  pthread_t t[3];
  for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, reader, 0);
  for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
  int pid = clone(opener, stack + sizeof stack, CLONE_FILES | CLONE_VM | SIGCHLD, 0);
  while (shared_fd == 0) nap(500);
  for (int i = 0; i < 7; i++) read(shared_fd, buf, 512);
  waitpid(pid, 0, 0);
  read(9999, buf, 1);
  if (fork() == 0) execl("/bin/cat", "cat", "mix.tmp", (char *)0);
  wait(0);
  return 0;
}
