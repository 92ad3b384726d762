/* Clears its environment, as servers do that overwrite it with their titles: before the first
 * event, in the parent, or in the child. */
#include <stdlib.h>
#include <sys/wait.h>
#include <tracebraid/probe.h>
#include <unistd.h>

TB_EVENT(cleared, step, TB_INT32(n));

int main(int count, char **arguments)
{
	char when = count > 1 ? arguments[1][0] : '-';
	if (when == 'b')
		clearenv();
	tb_trace(cleared, step, 0);
	if (when == 'p')
		clearenv();
	pid_t child = fork();
	if (child == 0) {
		if (when == 'c')
			clearenv();
		tb_trace(cleared, step, 1);
		_exit(0);
	}
	waitpid(child, 0, 0);
	return 0;
}
