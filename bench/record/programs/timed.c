/* timed FILE PROGRAM ARGUMENTS...: writes the seconds from fork to the program's end to the file,
 * and discards the program's output. The time that a recorder needs to start and to stop is thus
 * not measured. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	double begin = now();
	pid_t pid = fork();
	if (pid == 0) {
		dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	int status;
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 2;
	double seconds = now() - begin;
	FILE *file = fopen(argv[1], "w");
	if (!file)
		return 2;
	fprintf(file, "%.6f\n", seconds);
	fclose(file);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
